"""Architecture × cache kind: what a type reaches, what a rule switches on, and draws that lead there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.architectures import cells
from conformance.architectures.hidden import known, window_change
from conformance.architectures.overrides import override
from conformance.architectures.own_generate import own_generate
from conformance.architectures.shrink import make_config, tiny_config
from conformance.architectures.sizes import Sizes
from conformance.errors import BadInput
from conformance.events import KIND
from conformance.strategies.architectures import sizes_with
from conformance.strategies.cases import general_cases

REACHED = {
    "llama": ["full"],
    "qwen3": ["full", "sliding"],
    "mixtral": ["full", "sliding"],
    "phimoe": ["full", "sliding"],
    "gemma3_text": ["full", "sliding"],
    "gemma4_text": ["full", "shared", "sliding"],
    "llama4_text": ["chunked", "full"],
    "lfm2": ["convolutional", "full"],
    "jamba": ["convolutional", "full", "recurrent"],
    "t5": ["encoder-decoder", "full"],
    "mpt": ["none"],
}


@pytest.mark.parametrize("name", REACHED)
def test_a_type_reaches_these_kinds(name):
    assert list(cells.reachable(name)) == REACHED[name]


def test_windows_that_are_off_by_default_are_found_by_a_rule():
    assert not override("qwen3").switches
    assert known("qwen3").switches["window_on"].set == {"use_sliding_window": True}
    assert window_change(make_config("mistral", tiny_config("mistral"))) is None  # on already
    assert window_change(make_config("llama", tiny_config("llama"))) is None  # has none
    assert "window_on" not in known("nemotron_h").switches  # has one that does nothing
    config = make_config("qwen3_moe", tiny_config("qwen3_moe", Sizes(window_on=True, window=3)))
    assert config.sliding_window == 3


@pytest.mark.parametrize("name", ["qwen3", "gemma4_text", "jamba"])
@settings(max_examples=8, deadline=None, database=None)
@given(st.data())
def test_each_kind_can_be_asked_for(name, data):
    kind = data.draw(st.sampled_from(sorted(cells.reachable(name))))
    config = make_config(name, tiny_config(name, data.draw(sizes_with(name, kind))))
    assert kind in cells.kinds(config)


def test_a_kind_that_a_type_does_not_have_is_refused():
    with pytest.raises(BadInput, match="unknown cache kind of llama 'sliding'"):
        sizes_with("llama", "sliding")


@settings(max_examples=6, deadline=None, database=None)
@given(general_cases("cached", "qwen3", towards=[f"{KIND}sliding"]))
def test_cases_lean_without_breaking(case):
    assert case.model.architecture == "qwen3"


def test_models_with_a_generate_of_their_own_are_known_by_their_source():
    found = own_generate()
    assert "MoshiForConditionalGeneration" in found["moshi"]
    assert "llama" not in found
