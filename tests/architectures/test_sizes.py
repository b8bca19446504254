"""The free numbers: stated ranges, loud refusals."""

from dataclasses import replace

import pytest

from conformance.architectures.roles import evaluate, formula_of
from conformance.architectures.sizes import PLAINEST, RANGES, Range, Sizes
from conformance.errors import BadInput


@pytest.mark.parametrize("name", RANGES)
def test_every_number_has_a_range_and_its_default_is_inside(name):
    allowed = RANGES[name]
    assert getattr(PLAINEST, name) in allowed
    assert min(allowed.values()) == allowed.minimum
    assert max(allowed.values()) == allowed.maximum
    for outside in (allowed.minimum - 1, allowed.maximum + 1, None):
        with pytest.raises(BadInput, match=f"sizes: {name} is"):
            replace(PLAINEST, **{name: outside})


@pytest.mark.parametrize("heads", RANGES["heads"].values())
@pytest.mark.parametrize("groups", RANGES["kv_groups"].values())
def test_key_value_heads_divide_the_heads(heads, groups):
    sizes = Sizes(heads=heads, kv_groups=groups)
    assert heads % sizes.kv_heads == 0
    assert sizes.kv_heads == heads if groups == 1 else sizes.kv_heads <= heads


@pytest.mark.parametrize("plan", [(0,) * 5, (-1,)])
def test_a_plan_too_deep_or_negative_is_refused(plan):
    with pytest.raises(BadInput, match="layer_plan"):
        Sizes(layer_plan=plan)


def test_a_range_says_what_it_holds():
    assert str(Range(8, 16, 8)) == "8 to 16 in steps of 8"
    assert 12 not in Range(8, 16, 8)


@pytest.mark.parametrize(
    ("attribute", "formula"),
    [
        ("hidden_size", "hidden"),
        ("num_hidden_layers", "layers"),
        ("max_position_embeddings", "positions"),
        ("moe_intermediate_size", "intermediate"),
        ("encoder_ffn_dim", "intermediate"),
        ("num_key_value_heads", "kv_heads"),
        ("swa_num_attention_heads", "heads"),
        ("v_head_dim", "head_dim"),
        ("mamba_d_conv", "conv_kernel"),
        ("kv_lora_rank", "rank"),
        ("image_token_id", ""),
        ("num_mel_bins", ""),
        ("pretraining_tp", ""),
    ],
)
def test_names_mean_what_they_say(attribute, formula):
    assert formula_of(attribute) == formula


def test_formulas_are_products():
    assert evaluate("2*heads*window", Sizes(heads=3, window=5), layers=2) == 30
    assert evaluate("half_layers", PLAINEST, layers=4) == 2
