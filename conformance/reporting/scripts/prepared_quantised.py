# ruff: noqa: INP001
"""A cache of the caller's whose layers are quantised ones that lose nothing."""

from __future__ import annotations

from typing import Any

from transformers.cache_utils import QuantizedLayer


class Lossless(QuantizedLayer):
    """Keeps a copy where another would keep fewer bits."""

    _quantize = staticmethod(lambda tensor, axis=0: tensor.clone())  # noqa: ARG005 - given by the base
    _dequantize = staticmethod(lambda tensor: tensor)


def prepared(cache: Any) -> Any:
    """The cache that is passed."""
    cache.layers = [Lossless(residual_length=4) for _ in cache.layers]
    return cache
