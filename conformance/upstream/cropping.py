"""What caches say of being put back to an earlier length, and what `crop` takes."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def says_croppable(cache: Any, model: Any = None) -> bool | None:
    """Whether a cache says that `crop` can put it back, or None; before 5.17 only models did, of what they are not."""
    said = getattr(cache, "is_croppable", None)
    if said is not None:
        return bool(said)
    return False if getattr(model, "_is_stateful", False) else None


def can_be_put_back(cache: Any) -> bool:
    """Whether what a cache says, or does not say, can be relied on to put it back as it was a step ago.

    Caches have a word for it from 5.17 on (`is_croppable`); one that has not cannot say so. Before, every cache of
    the library's own kind counts as one that can.
    """
    from transformers.cache_utils import Cache

    said = says_croppable(cache)
    if said is not None or hasattr(Cache, "is_croppable"):
        return bool(said)
    return isinstance(cache, Cache) or hasattr(cache, "self_attention_cache")


@functools.cache
def crop_takes_a_count() -> bool:
    """Whether `crop(-j)` and `crop(0)` take j and no tokens back; before 5.14 zero was the length to keep."""
    from transformers.cache_utils import Cache

    return "tokens_to_remove" in inspect.signature(Cache.crop).parameters
