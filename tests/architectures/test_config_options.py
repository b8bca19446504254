"""What a default config hides: the other answers that a type can have, and fewer positions than tokens."""

from collections import Counter
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, find, given, settings
from toolbox import explored, small_case
from transformers.models.llama.modeling_llama import LlamaAttention

from conformance.architectures.capabilities import build_model
from conformance.architectures.options import FEW_POSITIONS, LEFT_ALONE, chosen_options, options
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.plainer import plainer_cases
from conformance.signature import switches
from conformance.strategies.cases import models
from conformance.subjects.installed import Installed

MANY = settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def test_the_other_answers_of_a_type():
    assert {"alibi": True} in options("falcon")
    assert {"multi_query": False} in options("falcon")
    assert options("llama") == ({"attention_bias": True}, {"mlp_bias": True})


@pytest.mark.parametrize("name", ["use_cache", "tie_word_embeddings", "is_decoder", "use_bidirectional_attention"])
def test_what_makes_no_other_model_is_left_alone(name):
    assert LEFT_ALONE.fullmatch(name)


def test_fewer_positions_than_tokens_where_they_are_no_limit():
    assert {"max_position_embeddings": FEW_POSITIONS} in options("xglm")
    assert not any("n_positions" in option for option in options("gpt2"))  # a table that was learned


def test_an_answer_can_make_positions_no_limit():
    assert {"use_learned_position_embeddings": False, "max_position_embeddings": FEW_POSITIONS} in options("trocr")


@pytest.mark.parametrize("name", ["falcon", "xglm"])
def test_a_model_with_each_runs(name):
    for option in options(name):
        build_model(name, {**tiny_config(name), **option})


def test_drawn_now_and_then_and_shrunk_away():
    drawn = Counter()

    @MANY
    @given(models("falcon"))
    def draw(model):
        drawn[len(chosen_options("falcon", model.config))] += 1

    draw()
    assert 0.1 < 1 - drawn[0] / drawn.total() < 0.5
    assert drawn[2]
    assert not chosen_options("falcon", find(models("falcon"), lambda _: True, settings=MANY).config)


def test_the_limit_is_told_where_positions_are_few():
    config = {**tiny_config("xglm"), "max_position_embeddings": FEW_POSITIONS}
    case = small_case("xglm", config=config, max_new_tokens=20, limit="neither")
    assert Scenario(case).generation_config().max_new_tokens == 20
    assert Scenario(small_case("xglm", max_new_tokens=20, limit="neither")).generation_config().max_new_tokens is None


def test_a_finding_says_whether_it_needs_one():
    case = small_case("falcon", config={**tiny_config("falcon"), "alibi": True, "bias": True})
    assert switches(case) == ["config alibi", "config bias"]
    kept = [chosen_options("falcon", plainer.model.config) for plainer in plainer_cases(case)]
    assert [{"alibi": True}] in kept
    assert [{"bias": True}] in kept


@contextmanager
def biased_keys_lose_their_bias_in_steps():
    """A step of one token leaves out the bias of its keys, which plain configs do not have."""
    right = LlamaAttention.forward

    def forward(self, hidden_states, *args, **kwargs):
        bias = self.k_proj.bias
        if bias is None or hidden_states.shape[1] > 1:
            return right(self, hidden_states, *args, **kwargs)
        kept = bias.data
        bias.data = kept * 0
        try:
            return right(self, hidden_states, *args, **kwargs)
        finally:
            bias.data = kept

    with patch.object(LlamaAttention, "forward", forward):
        yield


def test_a_fault_that_only_an_answer_shows_is_met(folder):
    with biased_keys_lose_their_bias_in_steps():
        search = explored(folder, Installed(), examples=40, until=["cached-matches-recomputed"])
    found = [failure for failure in search.failures if failure.key.check == "cached-matches-recomputed"]
    assert found
    assert all({"attention_bias": True} in chosen_options("llama", failure.case.model.config) for failure in found)
