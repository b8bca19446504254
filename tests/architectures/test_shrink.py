"""Settings: plain, whole, refused with one clear line when they cannot be used."""

import json

import pytest
from transformers import LlamaConfig, PreTrainedConfig

from conformance.architectures import catalogue
from conformance.architectures.shrink import kind_count, make_config, tiny_config, tiny_config_of
from conformance.architectures.sizes import Sizes
from conformance.architectures.used import numbers_used
from conformance.errors import BadInput, NotBuildable


@pytest.mark.parametrize("name", catalogue.core_names())
def test_settings_are_plain_json(name):
    settings = tiny_config(name)
    assert json.loads(json.dumps(settings)) == settings


def test_settings_hold_what_is_set_and_nothing_else():
    settings = tiny_config("llama", Sizes(heads=4, kv_groups=2))
    config = make_config("llama", settings)
    assert settings["hidden_size"] == 32
    assert settings["num_key_value_heads"] == 2
    assert {name: getattr(config, name) for name in settings} == settings
    assert "rms_norm_eps" not in settings


def test_settings_reach_configs_inside_configs():
    config = make_config("gemma3", tiny_config("gemma3", Sizes(heads=3)))
    assert config.text_config.hidden_size == config.vision_config.hidden_size == 24
    assert config.text_config._attn_implementation == "eager"


@pytest.mark.parametrize("name", catalogue.core_names())
def test_no_model_stops_by_itself_or_forgets_a_prompt(name):
    config = make_config(name, tiny_config(name))
    decoder = config.get_text_config(decoder=True)
    ids = [getattr(decoder, field, None) for field in ("bos_token_id", "pad_token_id", "eos_token_id")]
    assert all(token is None or 0 <= token < 40 for token in ids)
    lengths = [getattr(decoder, field, None) for field in ("max_position_embeddings", "n_positions")]
    assert all(length in (None, -1) or length >= 64 for length in lengths)


def test_lists_per_layer_are_cut_together():
    settings = tiny_config("dots3_note_text", Sizes(layer_plan=(1, 0, 2)))
    assert settings["num_hidden_layers"] == len(settings["layer_types"]) == len(settings["mlp_layer_types"]) == 3
    assert kind_count("dots3_note_text") == 3


def test_lists_of_layer_numbers_follow_the_plan():
    settings = tiny_config("lfm2", Sizes(layer_plan=(0, 1, 0, 1)))
    assert settings["full_attn_idxs"] == [1, 3]


def test_a_plan_always_keeps_a_layer_that_attends():
    assert tiny_config("lfm2", Sizes(layer_plan=(0, 0)))["layer_types"] == ["conv", "full_attention"]


def test_latent_attention_keeps_one_key_per_head():
    assert tiny_config("deepseek_v3", Sizes(heads=4, kv_groups=4))["num_key_value_heads"] == 4


def test_only_the_numbers_that_matter_are_used():
    assert "window" not in numbers_used("llama")
    assert {"window", "layer_plan"} <= set(numbers_used("gemma2"))
    assert {"window", "window_on"} <= set(numbers_used("mixtral"))
    assert "kv_groups" not in numbers_used("deepseek_v3")


def test_making_a_config_leaves_the_settings_alone():
    settings = tiny_config("gemma4_text")
    before = json.dumps(settings)
    make_config("gemma4_text", settings).layer_types.append("full_attention")
    assert json.dumps(settings) == before


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("llama", {"hiden_size": 8}, "no attribute 'hiden_size'"),
        ("gemma3", {"text_config.nothing": 8}, "no attribute 'text_config.nothing'"),
        ("llama", {"hidden_size.inner": 8}, "'hidden_size' holds no further attributes"),
        ("llama", {}, "not a tiny model: vocab_size is 32000"),
        ("gemma3", {}, "not a tiny model: "),
    ],
)
def test_settings_that_cannot_be_used_are_named(name, settings, message):
    with pytest.raises(BadInput, match=message):
        make_config(name, settings)


def test_the_reason_of_the_release_is_kept():
    with pytest.raises(NotBuildable, match=r"LlamaConfig refuses these settings: .*multiple"):
        make_config("llama", tiny_config("llama") | {"num_attention_heads": 5})


class OwnConfig(LlamaConfig):
    model_type = "own"


class Demanding(PreTrainedConfig):
    model_type = "demanding"

    def __init__(self, hidden_size=1024, num_attention_heads=16, **kwargs):
        if hidden_size < 512:
            raise ValueError("too small")
        self.hidden_size, self.num_attention_heads = hidden_size, num_attention_heads
        super().__init__(**kwargs)


class NeedsArguments(PreTrainedConfig):
    def __init__(self, size, **kwargs):
        self.size = size
        super().__init__(**kwargs)


def test_a_config_class_of_the_user_is_shrunk_by_the_same_rules():
    assert tiny_config_of(OwnConfig, Sizes(heads=4)) == tiny_config("llama", Sizes(heads=4))


def test_a_config_class_that_cannot_be_shrunk_names_the_attribute():
    with pytest.raises(NotBuildable, match=r"Demanding: stopped by hidden_size = 16: .*too small"):
        tiny_config_of(Demanding)
    with pytest.raises(NotBuildable, match=r"NeedsArguments\(\) cannot be made without arguments"):
        tiny_config_of(NeedsArguments)
