"""Drawing tiny models: only what matters varies, the plainest comes first, wrong ranges are refused."""

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from conformance.architectures.capabilities import build_model
from conformance.architectures.shrink import tiny_config
from conformance.architectures.sizes import PLAINEST, Sizes
from conformance.architectures.used import numbers_used
from conformance.errors import BadInput
from conformance.strategies.architectures import configs, sizes

FEW = settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=120, deadline=None, database=None)


@pytest.mark.parametrize("name", ["gemma4_text", "deepseek_v32", "zamba2"])
def test_drawn_settings_build(name):
    @FEW
    @given(configs(name))
    def builds(drawn):
        build_model(name, drawn)

    builds()


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_only_numbers_in_use_vary(name):
    @MANY
    @given(sizes(name))
    def varies(drawn):
        different = {field for field, value in vars(drawn).items() if value != getattr(PLAINEST, field)}
        assert different <= set(numbers_used(name))

    varies()


@pytest.mark.parametrize("name", ["gemma2", "mixtral"])
def test_shrinks_to_the_plainest(name):
    assert find(sizes(name), lambda _: True, settings=FEW) == PLAINEST
    assert find(configs(name), lambda _: True, settings=FEW) == tiny_config(name)


def test_what_survives_shrinking_is_what_matters():
    smallest = find(sizes("gemma2"), lambda s: s.heads >= 3 and s.window > 5, settings=MANY)
    assert smallest == Sizes(heads=3, window=6)


def test_selectors_keep_every_key_in_most_draws():
    drawn: list[int] = []

    @MANY
    @given(sizes("deepseek_v32"))
    def draw(one):
        drawn.append(one.index_topk)

    draw()
    assert 0.5 < sum(kept == 64 for kept in drawn) / len(drawn) < 1


def test_numbers_can_be_fixed_bounded_or_drawn_by_a_strategy():
    @FEW
    @given(sizes("gemma2", window=3, heads=(2, 3), head_dim=st.just(16), layer_plans=(1, 0), switches=False))
    def holds(drawn):
        assert drawn.window == 3
        assert drawn.heads in (2, 3)
        assert drawn.head_dim == 16
        assert drawn.layer_plan == (1, 0)

    holds()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": 3}, r"unknown number 'windows'; did you mean window"),
        ({"window": 3}, "llama has no use for window; it uses layers, heads"),
        ({"heads": 9}, "heads is 9, must be 1 to 4"),
        ({"heads": (3, 2)}, "no value for heads between 3 and 2"),
        ({"head_dim": (9, 15)}, "no value for head_dim between 9 and 15"),
        ({"layer_plans": (1,)}, "layer plan"),
        ({"layer_plans": ()}, "layer plan"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(BadInput, match=message):
        sizes("llama", **options)
