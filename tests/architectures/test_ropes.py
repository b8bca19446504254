"""Scaled positions: drawn where positions are rotary, named by a finding, and frequencies that stay grown are met."""

import inspect
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, find, given, seed, settings
from toolbox import small_case
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from conformance.architectures.capabilities import build_model
from conformance.architectures.ropes import BY_LENGTH, FIXED, SCALINGS, rope_of, ropes, stretched
from conformance.architectures.shrink import make_config, tiny_config
from conformance.case import ModelSpec, plain
from conformance.case.reading import parse_case
from conformance.errors import BadInput
from conformance.judge import judge
from conformance.plainer import plainer_cases
from conformance.plans.purity import PurityPlan
from conformance.profiles import exploring
from conformance.scope import on_plainest
from conformance.signature import switches
from conformance.statefulness import keeps_state
from conformance.strategies.cases import cases, models
from conformance.subjects.installed import Installed

FEW = settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def scaled_case(name="llama", kind="dynamic", **parts):
    config = tiny_config(name)
    return small_case(name, config={**config, **stretched(name, kind, config)}, **parts)


def repeated(kind):
    """The verdict of `repeatable`, and of what is left on the modules, for a prompt longer than the positions."""
    case = scaled_case(kind=kind, rows=(tuple(range(1, 12)),), max_new_tokens=6, family="purity", plan=PurityPlan())
    verdicts = judge(case, ["repeatable", "nothing-of-the-callers-changed"], Installed()).verdicts
    return verdicts["repeatable"].status, verdicts["nothing-of-the-callers-changed"].status


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("llama", set(SCALINGS)),
        ("gemma3_text", set(SCALINGS) - {"longrope"}),  # a rope for each kind of layer
        ("gpt2", set()),  # positions that are learned
        ("gpt_oss", set()),  # scaled by default
    ],
)
def test_the_kinds_of_a_type(name, kinds):
    assert set(ropes(name)) == kinds


def test_a_model_has_the_scaling_that_was_asked_for():
    for kind in ropes("llama"):
        model = build_model("llama", {**tiny_config("llama"), **stretched("llama", kind, tiny_config("llama"))})
        assert model.model.rotary_emb.rope_type == kind
    drawn = {**tiny_config("phi3"), "hidden_size": 64}
    rope = make_config("phi3", {**drawn, **stretched("phi3", "longrope", drawn)}).rope_parameters
    assert len(rope["long_factor"]) == 64 // 2 // 2
    assert rope["original_max_position_embeddings"] == 8


def test_drawn_now_and_then_and_shrunk_away():
    drawn = Counter()

    @seed(3)
    @exploring(200)
    @given(models("llama"))
    def draw(model):
        drawn[rope_of(model.config)] += 1

    draw()
    assert 0.05 < 1 - drawn[""] / drawn.total() < 0.3
    assert set(drawn) == {"", *FIXED}
    assert not rope_of(find(models("llama"), lambda _: True, settings=FEW).config)
    assert not rope_of(find(models("llama", scalings=()), lambda _: True, settings=FEW).config)


@pytest.mark.parametrize(("family", "kinds"), [("purity", {*FIXED, *BY_LENGTH}), ("cached", set(FIXED))])
def test_frequencies_follow_the_length_where_nothing_is_recomputed(family, kinds):
    drawn = set()

    @seed(3)
    @exploring(200)
    @given(cases(family, "llama"))
    def draw(case):
        drawn.add(rope_of(case.model.config))

    draw()
    assert drawn == {"", *kinds}


def test_a_kind_that_there_is_not_is_refused():
    with pytest.raises(BadInput, match="unknown rope type 'yarm'; did you mean yarn"):
        find(models("llama", scalings=("yarm",)), lambda _: True, settings=FEW)


def test_a_finding_names_it_and_takes_it_to_the_plainest_type():
    case = scaled_case("qwen2")
    assert parse_case(case.to_json()) == case
    assert switches(case) == ["config rope_type dynamic"]
    assert any(plain(plainer.model.config) == tiny_config("qwen2") for plainer in plainer_cases(case))
    assert rope_of(on_plainest(case, "llama").model.config) == "dynamic"


def test_runs_share_no_model_whose_frequencies_follow_the_length():
    assert not keeps_state(scaled_case(kind="linear").model)
    assert keeps_state(scaled_case(kind="dynamic").model)


@pytest.mark.parametrize("kind", FIXED)
def test_frequencies_that_are_made_once_leave_nothing(kind):
    assert repeated(kind) == ("pass", "pass")


def test_frequencies_that_are_chosen_anew_are_no_fault():
    assert repeated("longrope") == ("pass", "allowed")


def test_frequencies_that_stay_grown_are_met():
    """A rope that never begins anew, whatever the installed release's own does."""
    plain = inspect.unwrap(LlamaRotaryEmbedding.forward)

    def stays(self, x, position_ids):
        length = int(position_ids.max()) + 1
        if length > self.max_seq_len_cached:
            self.inv_freq = ROPE_INIT_FUNCTIONS["dynamic"](self.config, x.device, seq_len=length)[0]
            self.max_seq_len_cached = length
        return plain(self, x, position_ids)

    with patch.object(LlamaRotaryEmbedding, "forward", stays):
        assert repeated("dynamic") == ("fail", "allowed")


def test_frequencies_that_begin_anew_with_every_prompt_are_no_fault():
    right = LlamaRotaryEmbedding.forward

    def begins(self, x, position_ids):
        if position_ids.shape[1] > 1:
            self.inv_freq = self.original_inv_freq.clone()
            self.max_seq_len_cached = self.original_max_seq_len
        return right(self, x, position_ids)

    with patch.object(LlamaRotaryEmbedding, "forward", begins):
        assert repeated("dynamic") == ("pass", "allowed")


@pytest.mark.parametrize("name", ["gemma4_text", "dots3_note_text", "llava", "glm4", "t5gemma"])
def test_what_is_asked_for_fits_into_a_case(name):
    config = tiny_config(name)
    for kind in SCALINGS:
        model = ModelSpec(architecture=name, config={**config, **stretched(name, kind, config)})
        assert rope_of(model.config) in ("", kind)
