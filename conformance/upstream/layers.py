"""The layers of a cache: their sizes, what they tell the mask, and whether they record past states."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

RECORD = "activate_past_recording"  # the method of a cache that has it record, from 5.17 on


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
    sizes = ask(torch.arange(length, length + count)) if _by_position(layer.__class__) else ask(count)
    return tuple(int(size) for size in sizes)


@cache
def _by_position(layer_class: Any) -> bool:
    """Whether layers of this class are told positions, as before 5.3, and not a number of tokens."""
    return "cache_position" in inspect.signature(layer_class.get_mask_sizes).parameters


def records(cache: Any) -> bool:
    """Whether any layer of a cache records its past states."""
    return any(getattr(layer, "record_past", False) for layer in layers_of(cache))


def can_record(cache: Any) -> bool:
    """Whether a cache can be told to record its past states."""
    return hasattr(cache, RECORD)


def record_past(cache: Any) -> bool:
    """Have a cache record its past states, as a caller may. Says whether it knows how to."""
    if not can_record(cache):
        return False
    getattr(cache, RECORD)()
    return True


def own_part(cache: Any) -> Any:
    """The part of a cache that holds what a decoder was fed: all of it, or an encoder-decoder's self-attention."""
    return getattr(cache, "self_attention_cache", cache)


def allocate(cache: Any, batch: int, heads: Sequence[int], sizes: Sequence[int], like: torch.Tensor) -> None:
    """Allocate the layers of an empty static cache, before its first update; heads, sizes: of each layer."""
    cache.early_initialization(**allocated(batch, heads, sizes), dtype=like.dtype, device=like.device)


def allocated(batch: int, heads: Sequence[int], sizes: Sequence[int]) -> dict[str, Any]:
    """What is told of the sizes: one number where all layers agree, since the first releases take no list."""
    heads_given, sizes_given = (list(v) if len(set(v)) > 1 else v[0] for v in (heads, sizes))
    return {"batch_size": batch, "num_heads": heads_given, "head_dim": sizes_given}


# What a cache tells of itself as a whole, by the names of all releases: a property, or a method without arguments.
TOLD = {
    "batch size": ("batch_size", "max_batch_size"),
    "longest": ("get_max_length", "get_max_cache_shape"),
    "is_initialized": ("is_initialized",),
    "has_previous_state": ("has_previous_state",),
    "layers": ("__len__",),
}


def told_of(cache: Any) -> dict[str, Any]:
    """What a cache tells of itself as a whole, an encoder-decoder's of its self-attention: see `answers_of`."""
    return answers_of(own_part(cache))


def answers_of(cache: Any) -> dict[str, Any]:
    """What a cache tells of itself as a whole, each as a plain value or as the name of what asking for it raises.

    What a release does not know is left out.
    """
    found = {}
    for word, names in TOLD.items():
        name = next((name for name in names if hasattr(type(cache), name)), None)
        if name is not None:
            found[word] = _answer(cache, name)
    if hasattr(type(cache), "__iter__"):
        found["iterated"] = _answer(cache, "__iter__")
    return found


def _answer(cache: Any, name: str) -> Any:
    try:
        value = getattr(cache, name)
        value = value() if callable(value) else value
        return len(list(value)) if name == "__iter__" else int(value)
    except Exception as error:  # noqa: BLE001 - kinds that have no such thing to tell raise, each in its own way
        return type(error).__name__
