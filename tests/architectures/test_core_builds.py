"""Every core architecture builds and runs at the plainest and at the most extreme sizes."""

import statistics
from dataclasses import replace

import pytest
import torch

from conformance.architectures import catalogue
from conformance.architectures.cache_kinds import WORDS, cache_kinds
from conformance.architectures.capabilities import build_model
from conformance.architectures.shrink import make_config, tiny_config
from conformance.architectures.sizes import PLAINEST, RANGES, SWITCHES, Sizes

SMALLEST = Sizes(**{name: allowed.minimum for name, allowed in RANGES.items()})
LARGEST = Sizes(**{name: allowed.maximum for name, allowed in RANGES.items()}, layer_plan=(1, 0, 2, 1))
EXTREMES = {"plainest": PLAINEST, "smallest": SMALLEST, "largest": LARGEST}
MOST_PARAMETERS, MEDIAN_PARAMETERS = 500_000, 100_000
parameters: dict[str, int] = {}


@pytest.mark.parametrize("sizes", EXTREMES.values(), ids=EXTREMES)
@pytest.mark.parametrize("name", catalogue.core_names())
def test_builds_and_runs(name, sizes):
    model = build_model(name, tiny_config(name, sizes))
    tokens = torch.tensor([[3, 4]])
    halves = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        logits = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), **halves).logits
    assert logits.shape == (1, 2, sizes.vocabulary)
    assert torch.isfinite(logits).all()
    parameters[f"{name} {sizes}"] = sum(p.numel() for p in model.parameters())
    assert parameters[f"{name} {sizes}"] < MOST_PARAMETERS


def test_models_are_tiny():
    assert not parameters or statistics.median(parameters.values()) < MEDIAN_PARAMETERS


def _kinds(name):
    switched = replace(PLAINEST, **dict.fromkeys(SWITCHES, True))
    return {kind for sizes in (PLAINEST, switched) for kind in cache_kinds(make_config(name, tiny_config(name, sizes)))}


def test_the_core_covers_every_cache_kind():
    found = {kind.partition(":")[0] for name in catalogue.core_names() for kind in _kinds(name)}
    assert found == set(WORDS)


@pytest.mark.parametrize(
    ("name", "sizes", "kinds"),
    [
        ("llama", PLAINEST, ("full",)),
        ("gemma2", PLAINEST, ("full", "sliding")),
        ("gemma2", Sizes(layer_plan=(0,)), ("sliding",)),
        ("qwen2", Sizes(window_on=True), ("full", "sliding")),
        ("mixtral", Sizes(window_on=True), ("sliding",)),
        ("llama4_text", PLAINEST, ("chunked", "full")),
        ("lfm2", PLAINEST, ("convolutional", "full")),
        ("mamba", PLAINEST, ("convolutional", "recurrent")),
        ("minimax", PLAINEST, ("full", "own:MiniMaxCache")),
        ("mpt", PLAINEST, ("none",)),
        ("bart", PLAINEST, ("full",)),
        ("bart:seq2seq", PLAINEST, ("encoder-decoder", "full")),
        ("t5gemma", PLAINEST, ("encoder-decoder", "full", "sliding")),
    ],
)
def test_cache_kinds(name, sizes, kinds):
    assert cache_kinds(make_config(name, tiny_config(name, sizes))) == kinds


@pytest.mark.parametrize(
    "name", ["gemma2", "jamba", "mistral", "lara_mini", "mamba", "dots3_note_text", "inkling_text"]
)
def test_cache_kinds_are_those_of_the_cache_that_generate_makes(name):
    model = build_model(name, tiny_config(name))
    tokens = torch.tensor([[3, 4]])
    out = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), use_cache=True)
    cache = next(out[key] for key in ("cache", "past_key_values", "cache_params") if key in out)
    words = {
        "DynamicLayer": "full",
        "DynamicSlidingWindowLayer": "sliding",
        "DynamicIndexedLayer": "indexed",
        "LinearAttentionLayer": "recurrent",
        "LinearAttentionAndFullAttentionLayer": "hybrid",
        "LinearAttentionAndSlidingWindowAttentionLayer": "hybrid_sliding",
    }
    seen = {words[type(layer).__name__] for layer in cache.layers}
    assert seen == set(cache_kinds(model.config)) - {"convolutional"}
