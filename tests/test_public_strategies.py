"""The strategies for everybody: importable by name, for classes never seen before, and loud about what cannot be."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedConfig

from conformance import strategies
from conformance.architectures.apply import build
from conformance.architectures.cells import kinds, reachable
from conformance.architectures.shrink import make_config
from conformance.case import plain
from conformance.errors import BadInput, NotBuildable
from conformance.events import KIND
from conformance.tying import resolve

few = settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))


class OwnConfig(PreTrainedConfig):
    """A config of somebody else's, in the usual words."""

    model_type = "somebody-elses"

    def __init__(
        self,
        vocab_size=50000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        sliding_window=None,
        use_sliding_window=False,
        secret_sauce=7,
        **kwargs,
    ):
        self.vocab_size, self.hidden_size, self.intermediate_size = vocab_size, hidden_size, intermediate_size
        self.num_hidden_layers, self.num_attention_heads = num_hidden_layers, num_attention_heads
        self.num_key_value_heads, self.secret_sauce = num_key_value_heads, secret_sauce
        self.sliding_window, self.use_sliding_window = sliding_window, use_sliding_window
        super().__init__(**kwargs)


class StubbornConfig(OwnConfig):
    """Refuses to be tiny in one place."""

    model_type = "stubborn"

    def __init__(self, intermediate_size=11008, **kwargs):
        if intermediate_size < 1024:
            raise ValueError("intermediate_size must be at least 1024")
        super().__init__(intermediate_size=intermediate_size, **kwargs)


class NeedyConfig(OwnConfig):
    """Cannot be made without arguments."""

    model_type = "needy"

    def __init__(self, teacher, **kwargs):
        self.teacher = teacher
        super().__init__(**kwargs)


def test_the_public_names_are_strategies_whatever_modules_are_called():
    for name in strategies.__all__:
        assert callable(getattr(strategies, name))


@few
@given(strategies.configs(OwnConfig))
def test_configs_of_a_class_never_seen_before_are_tiny_and_valid(drawn):
    config = build(OwnConfig, drawn)
    assert config.num_hidden_layers <= 4
    assert config.vocab_size <= 128
    assert config.hidden_size % config.num_attention_heads == 0
    assert config.num_attention_heads % config.num_key_value_heads == 0
    assert config.secret_sauce == 7
    assert config.use_sliding_window == (config.sliding_window is not None)


@few
@given(strategies.configs(OwnConfig, layers=3, vocabulary=(40, 48)))
def test_its_numbers_can_be_bounded(drawn):
    assert drawn["num_hidden_layers"] == 3
    assert drawn["vocab_size"] in (40, 48)


def test_what_stops_a_class_is_named_at_once():
    with pytest.raises(NotBuildable, match=r"stopped by intermediate_size = 32: .*at least 1024"):
        strategies.configs(StubbornConfig)
    with pytest.raises(NotBuildable, match=r"NeedyConfig\(\) cannot be made without arguments"):
        strategies.configs(NeedyConfig)
    with pytest.raises(BadInput, match="OwnConfig has no use for experts; it uses layers"):
        strategies.configs(OwnConfig, experts=2)
    with pytest.raises(BadInput, match="unknown number 'layer'"):
        strategies.configs(OwnConfig, layer=2)


@few
@given(strategies.architectures(names="llama,mistral"))
def test_architectures_are_drawn_from_what_was_asked_for(name):
    assert name in ("llama", "mistral")


def draw_one(strategy):
    """Draw from a strategy once; its refusals are raised."""

    @settings(max_examples=1, database=None)
    @given(strategy)
    def drawn(value):
        assert value

    drawn()


def test_impossible_requests_are_refused_when_the_strategy_is_made_or_drawn():
    with pytest.raises(BadInput, match="unknown architecture 'lama'"):
        strategies.architectures(names="lama")
    with pytest.raises(BadInput, match=r"length=\(3, 2\) must be a range"):
        draw_one(strategies.prompts(vocabulary=50, length=(3, 2)))
    with pytest.raises(BadInput, match=r"accelerators=\(0, 5\) must be a range within 0 to 4"):
        draw_one(strategies.placements(accelerators=(0, 5)))
    with pytest.raises(BadInput, match=r"init_scales=\(\) leaves nothing"):
        draw_one(strategies.models("llama", init_scales=()))


@few
@given(strategies.placements(), strategies.placements(accelerators=(2, 3), stranded=True))
def test_placements_are_over_what_there_is(plain, split):
    assert {place for place in plain.places if place.startswith("sim")} == set()
    assert plain.accelerators == 0
    assert split.accelerators in (2, 3)
    assert split.stranded is not None


@few
@given(st.data())
def test_models_lean_towards_the_kinds_that_are_wanted(data):
    drawn = [data.draw(strategies.models("qwen2", towards=[f"{KIND}sliding"])) for _ in range(3)]
    met = [set(kinds(make_config("qwen2", plain(model.config)))) for model in drawn]
    assert set().union(*met) <= set(reachable("qwen2"))


@few
@given(strategies.models("llama", tied=True))
def test_models_with_tied_weights_tie_what_they_have(model):
    from conformance.strategies.tying import shapes_of

    assert resolve(model.tied, shapes_of("llama", model.config))


def test_reprs_say_what_is_drawn():
    assert "llama" in repr(strategies.models("llama"))
    assert "vocabulary=50" in repr(strategies.prompts(vocabulary=50))
