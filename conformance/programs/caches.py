"""Caches that `generate` can be given beside those that it makes: quantised, plain for an encoder-decoder, early."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from conformance import upstream

RESIDUAL = 4  # tokens that the quantised layer keeps as they are


@cache
def lossless_layer() -> type:
    """A quantised layer of the installed base class whose quantisation loses nothing, for comparisons."""
    from transformers.cache_utils import QuantizedLayer

    class LosslessQuantizedLayer(QuantizedLayer):
        """Keeps a copy where another would keep fewer bits."""

        def __init__(self) -> None:
            super().__init__(residual_length=RESIDUAL)

        def _quantize(self, tensor: torch.Tensor, axis: int = 0) -> torch.Tensor:  # noqa: ARG002 - given by the base
            return tensor.clone()

        def _dequantize(self, q_tensor: torch.Tensor) -> torch.Tensor:
            return q_tensor

    return LosslessQuantizedLayer


def quantized(config: Any) -> Any:
    """A quantised cache of `lossless_layer`s for a config whose layers are all of full attention."""
    from transformers.cache_utils import Cache

    count = config.get_text_config(decoder=True).num_hidden_layers
    return Cache(layers=[lossless_layer()() for _ in range(count)])


def plain(config: Any) -> Any:
    """A dynamic cache as a user makes it who does not know of encoder-decoder caches."""
    from transformers import DynamicCache

    return DynamicCache(config=config.get_text_config(decoder=True))


def initialize_early(empty: Any, filled: Any, batch: int) -> None:
    """Allocate the layers of an empty static cache before its first update, with the shapes of a filled one's."""
    shapes = [getattr(layer, "keys", None) for layer in upstream.layers_of(filled)]
    known = [shape for shape in shapes if shape is not None]
    if not known or any(layer.keys.shape != layer.values.shape for layer in _with_keys(filled)):
        return  # keys and values of their own sizes cannot be told in this call
    heads = [known[0].shape[1] if shape is None else shape.shape[1] for shape in shapes]
    sizes = [known[0].shape[3] if shape is None else shape.shape[3] for shape in shapes]
    own = getattr(empty, "self_attention_cache", empty)
    own.early_initialization(
        batch_size=batch,
        num_heads=_one_or_all(heads),
        head_dim=_one_or_all(sizes),
        dtype=known[0].dtype,
        device=known[0].device,
    )


def _one_or_all(values: list[int]) -> int | list[int]:
    """One number where all layers agree: the first releases take no list."""
    return values[0] if len(set(values)) == 1 else values


def _with_keys(filled: Any) -> list[Any]:
    return [layer for layer in upstream.layers_of(filled) if getattr(layer, "keys", None) is not None]
