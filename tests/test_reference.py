"""The reference loop gives bitwise what the installed `generate` gives."""

import pytest
import torch
from toolbox import explored, small_case

from conformance.build import Scenario
from conformance.checks.purity import watched
from conformance.compare import compare_exactly
from conformance.reference.decode import OtherTokensFed, choose, fed_tokens, forced_loop
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

SOME = ("llama", "mistral", "gemma2", "qwen3", "gpt2", "lfm2", "t5", "mamba")
CHECK = "reference-matches-installed"


@pytest.mark.parametrize("architecture", SOME)
def test_equals_the_installed_loop_over_drawn_cases(architecture, folder):
    search = explored(folder, Installed(), architecture=architecture, examples=14, checks=[CHECK])
    assert not search.failures
    # Blocked, or not applicable: installed and reference crash alike.
    assert set(search.result.verdicts) <= {"pass", "blocked-by", "not-applicable"}
    assert search.result.verdicts["pass"] >= 7


SETTINGS = {
    "greedy": {},
    "sampling": {"do_sample": True, "sample_seed": 5},
    "states": {"output_attentions": True, "output_hidden_states": True},
    "ends": {"eos": (3, 7, 11, 19, 23, 31), "pad": 2},
    "penalty": {"repetition_penalty": 1.5},
}


@pytest.mark.parametrize("architecture", ["llama", "t5"])
@pytest.mark.parametrize("parts", SETTINGS.values(), ids=SETTINGS)
def test_every_field_is_the_same(architecture, parts):
    case = small_case(architecture, rows=((3, 4, 5, 6), (7, 8)), max_new_tokens=6, **parts)
    outcomes = [watched(Runs(case, subject())) for subject in (Installed, Reference)]
    assert not any(outcome.crash for outcome in outcomes)
    installed, reference = (outcome.fields(stream=True) for outcome in outcomes)
    assert not compare_exactly(reference, installed).differences
    assert outcomes[1].stream_ends == 1
    assert {"sequences", "scores.0", "logits.0", "rng", "streamed.0"} <= reference.keys()
    assert any(name.startswith("states") for name in reference) == ("output_attentions" in parts)


def test_without_a_dict_it_returns_the_sequences():
    scenario = Scenario(small_case())
    call = scenario.call(return_dict_in_generate=False, output_scores=False, output_logits=False)
    one, other = (subject().generate(scenario.model(), call) for subject in (Installed, Reference))
    assert torch.equal(one, other)


def test_sampling_draws_the_same_number_of_random_numbers():
    case = small_case(do_sample=True, sample_seed=5, max_new_tokens=8)
    assert Runs(case, Installed()).batch.rng_after == Runs(case, Reference()).batch.rng_after


def test_choosing_is_the_arg_max_or_a_draw():
    scores = torch.tensor([[0.0, 5.0, 1.0], [9.0, 0.0, 0.0]])
    assert choose(scores, do_sample=False).tolist() == [1, 0]
    torch.manual_seed(0)
    drawn = torch.stack([choose(torch.zeros(1, 4), do_sample=True) for _ in range(200)])
    assert set(drawn.flatten().tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("groups", [[1] * 6, [6], [2, 4], [1, 3, 2]])
def test_forced_tokens_give_one_vector_for_each_and_one_for_the_prompt(groups):
    runs = Runs(small_case(rows=((3, 4), (5, 6))), Installed())
    logits = runs.forced(None, torch.arange(12).view(2, 6), groups)
    assert len(logits) == 7
    assert all(step.shape == (2, 64) for step in logits)


def test_forcing_a_models_own_tokens_gives_its_own_logits():
    runs = Runs(small_case(max_new_tokens=5), Installed())
    tokens = torch.tensor([runs.batch.tokens(0)[:-1]])
    for forced, own in zip(runs.forced(None, tokens, [1] * 4), runs.batch.logits, strict=True):
        assert torch.equal(forced, own)


def test_a_model_that_feeds_other_tokens_is_told_apart():
    logits: list[torch.Tensor] = []
    scenario = Scenario(small_case())
    model = scenario.model()
    right = model.prepare_inputs_for_generation

    def prepare(input_ids, **kwargs):
        inputs = right(input_ids, **kwargs)
        return inputs if kwargs.get("is_first_iteration") else {**inputs, "input_ids": inputs["input_ids"][:, -1:]}

    model.prepare_inputs_for_generation = prepare
    loop = forced_loop(torch.tensor([[1, 2, 3]]), [3], logits)
    with torch.no_grad(), pytest.raises(OtherTokensFed, match="asked for 3 tokens, its preparation feeds 1"):
        model.generate(**scenario.inputs(), generation_config=scenario.generation_config(), custom_generate=loop)


def test_fed_tokens_are_counted_on_the_decoders_side():
    assert fed_tokens({"input_ids": torch.ones(1, 3)}) == 3
    assert fed_tokens({"input_ids": None, "decoder_input_ids": torch.ones(1, 2)}) == 2
