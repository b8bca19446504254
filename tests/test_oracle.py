"""The oracle: its short cut is what recomputing step by step gives, and it decodes as a healthy model does."""

import pytest
import torch
from toolbox import small_case

from conformance.architectures import catalogue
from conformance.architectures.capabilities import capabilities
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.compare import BOUND, scale_of
from conformance.errors import NotBuildable
from conformance.oracle import Oracle, OracleRaised
from conformance.runs import Runs
from conformance.subjects.installed import Installed

ROW, TOKENS = tuple(range(3, 15)), [5, 9, 2, 30, 30, 7, 1, 12]
HEALTHY = ("llama", "qwen2", "gemma2", "mistral", "gpt2", "olmo2", "t5")


def oracle_of(architecture, **parts):
    scenario = Scenario(small_case(architecture, rows=(ROW,), **parts))
    if not capabilities(architecture).buildable:
        pytest.skip(f"not buildable: {capabilities(architecture).reason}")
    return Oracle(scenario)


def stepwise(architecture):
    return Oracle(Scenario(small_case(architecture, rows=(ROW,)))).stepwise(len(ROW) + len(TOKENS))


@pytest.mark.parametrize("architecture", catalogue.core_names())
def test_the_short_cut_equals_step_by_step(architecture):
    """Wherever it is used: a type that needs one forward a step says so."""
    try:
        oracle = oracle_of(architecture)
    except NotBuildable as error:
        pytest.skip(str(error))
    if oracle.stepwise(len(ROW) + len(TOKENS)):
        pytest.skip("decoded step by step always")
    with torch.no_grad():
        short, long = oracle.at_once(0, TOKENS), oracle.step_by_step(0, TOKENS)
    assert short.shape == long.shape == (len(TOKENS), oracle.scenario.vocabulary)
    assert float((short - long).abs().max()) <= BOUND * scale_of(list(long))


def test_the_short_cut_is_used_for_most_types():
    """Otherwise the test above says little."""
    used = [name for name in catalogue.core_names() if not stepwise(name)]
    assert len(used) >= 30


@pytest.mark.parametrize("architecture", HEALTHY)
def test_greedy_is_what_a_healthy_type_generates(architecture):
    case = small_case(architecture, rows=((3, 9, 4), (7, 2)), max_new_tokens=6, eos=(5, 11, 17, 23, 29))
    runs = Runs(case, Installed())
    for row, outcome in enumerate(runs.alone):
        tokens = outcome.tokens(0)
        assert runs.oracle.greedy(row, 6, case.settings.eos) == tokens
        assert 1 <= len(tokens) <= 6


def test_greedy_applies_processors():
    case = small_case(rows=((3, 9, 4),), max_new_tokens=6, repetition_penalty=1.5)
    runs = Runs(case, Installed())
    assert runs.oracle.greedy(0, 6, (), runs.processors([0])) == runs.batch.tokens(0)
    assert runs.oracle.greedy(0, 6, ()) != runs.batch.tokens(0)


def test_greedy_stops_with_the_first_end_token_and_at_the_limit():
    oracle = oracle_of("llama")
    tokens = oracle.greedy(0, 6, ())
    assert len(tokens) == 6
    assert oracle.greedy(0, 6, (tokens[2],)) == tokens[: tokens.index(tokens[2]) + 1]
    assert oracle.greedy(0, 6, tuple(tokens)) == tokens[:1]


def test_logits_of_a_step_see_what_precedes_it_and_nothing_else():
    oracle = oracle_of("llama")
    base = oracle.logits(0, TOKENS)
    changed = oracle.logits(0, [*TOKENS[:3], 40, *TOKENS[4:]])
    same = [bool((base[step] - changed[step]).abs().max() < 1e-6) for step in range(len(TOKENS))]
    assert same == [True] * 4 + [False] * 4


def test_a_row_does_not_depend_on_the_rows_beside_it():
    alone = Oracle(Scenario(small_case(rows=((3, 4),))))
    beside = Oracle(Scenario(small_case(rows=((9, 9, 9, 9), (3, 4)))))
    assert torch.equal(alone.logits(0, [5, 6]), beside.logits(1, [5, 6]))


def test_the_oracle_runs_on_a_model_of_its_own():
    scenario = Scenario(small_case())
    oracle = Oracle(scenario)
    assert oracle.model is not Oracle(scenario).model
    assert oracle.model is not scenario.pristine


def test_the_wide_oracle_is_wider_and_close():
    runs = Runs(small_case(rows=(ROW,)), Installed())
    wide, narrow = runs.wide_oracle.logits(0, TOKENS), runs.oracle.logits(0, TOKENS)
    assert (wide.dtype, narrow.dtype) == (torch.float64, torch.float32)
    assert float((wide - narrow).abs().max()) <= BOUND * scale_of(list(wide))


def test_a_perturbed_oracle_moves_by_about_rounding():
    runs = Runs(small_case(rows=(ROW,)), Installed())
    noise = runs.noise(0, TOKENS)(len(TOKENS) - 1)
    assert 1e-8 < noise < BOUND * scale_of(list(runs.oracle.logits(0, TOKENS)))


def test_an_encoder_that_raises_is_said_to_be_the_oracles_reason():
    """It is the model's fault, and no breakage of the harness."""
    config = {**tiny_config("t5"), "relative_attention_num_buckets": 0}
    with pytest.raises(OracleRaised, match="ZeroDivisionError"):
        Oracle(Scenario(small_case("t5", config=config))).logits(0, [1])
