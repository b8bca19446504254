"""What types can do, and that types which cannot be built are an answer and not an error."""

import json
from importlib import resources

import pytest

from conformance.architectures import catalogue
from conformance.architectures.capabilities import capabilities, facts, stepwise_reason
from conformance.architectures.catalogue import UnknownArchitecture
from conformance.architectures.overrides import Change, Override, override
from conformance.architectures.shrink import tiny_config
from conformance.architectures.sizes import SWITCHES, Sizes


def test_a_plain_decoder_can_do_everything():
    found = capabilities("llama")
    assert found.buildable
    assert found.attention == ("eager", "sdpa")
    assert found.float64
    assert found.static_cache
    assert found.accepts_position_ids
    assert not found.encoder_decoder
    assert not found.own_generate


def test_the_exceptions_are_seen():
    assert capabilities("bloom").attention == ("eager",)
    assert not capabilities("mixtral").float64
    assert not capabilities("mamba").static_cache
    assert capabilities("t5").encoder_decoder
    assert not capabilities("bart").encoder_decoder


def test_what_cannot_be_built_says_why():
    found = capabilities("musicgen")
    assert not found.buildable
    assert found.reason


def test_settings_that_the_release_refuses_are_not_buildable():
    found = capabilities("llama", tiny_config("llama") | {"num_attention_heads": 5})
    assert not found.buildable
    assert "multiple" in found.reason
    assert capabilities("llama").buildable


def test_an_unknown_name_is_an_error():
    with pytest.raises(UnknownArchitecture):
        capabilities("lama")


def test_one_forward_is_no_oracle_for_some():
    assert stepwise_reason("llama", tiny_config("llama"), 10) == ""
    assert stepwise_reason("xlnet", {}, 10)
    dropping = tiny_config("deepseek_v32", Sizes(index_topk=4))
    assert stepwise_reason("deepseek_v32", dropping, 10)
    assert stepwise_reason("deepseek_v32", dropping, 4) == ""
    assert stepwise_reason("reformer", {}, 10)


def _entries():
    text = resources.files("conformance.architectures").joinpath("overrides.json").read_text(encoding="utf-8")
    return json.loads(text)


def test_every_override_is_about_a_known_type_and_has_a_reason():
    known = set(Change.__dataclass_fields__)
    for name, entry in _entries().items():
        catalogue.get(name)
        changes = set(entry) & known
        assert set(entry) <= known | {"reason", "switches", "arguments", "facts"}
        assert not (changes or "switches" in entry) or entry["reason"]
        assert set(entry.get("switches", {})) <= set(SWITCHES)
        assert isinstance(override(name), Override)


def test_facts_are_reasons():
    assert "ties" in str(facts("doge")["selects"])
    assert facts("llama") == {}
