"""The layers of a cache: their sizes, what they tell the mask, and whether they record past states."""

from __future__ import annotations

import inspect
from typing import Any


def layers_of(cache: Any) -> list[Any]:
    """The layers of a cache, of an encoder-decoder's those of its self-attention; none where its kind has no layers."""
    return list(getattr(getattr(cache, "self_attention_cache", cache), "layers", None) or ())


def fixed_size(cache: Any) -> int | None:
    """How many tokens the smallest layer of fixed size holds; None where every layer grows or slides."""
    fixed = [x for x in layers_of(cache) if hasattr(x, "max_cache_len") and not getattr(x, "is_sliding", False)]
    return min((int(layer.max_cache_len) for layer in fixed), default=None)


def mask_sizes(layer: Any, count: int, length: int) -> tuple[int, ...] | None:
    """What a layer tells the mask for a forward of `count` tokens; None where it has no mask."""
    import torch

    ask = getattr(layer, "get_mask_sizes", None)
    if ask is None:
        return None
    by_position = "cache_position" in inspect.signature(ask).parameters
    sizes = ask(torch.arange(length, length + count)) if by_position else ask(count)
    return tuple(int(size) for size in sizes)


def records(cache: Any) -> bool:
    """Whether any layer of a cache records its past states."""
    return any(getattr(layer, "record_past", False) for layer in layers_of(cache))


def record_past(cache: Any) -> bool:
    """Have a cache record its past states, as a caller may. Says whether it knows how to."""
    if not hasattr(cache, "activate_past_recording"):
        return False
    cache.activate_past_recording()
    return True
