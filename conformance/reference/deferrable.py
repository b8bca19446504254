"""Where a step more than there should be can be taken and undone, and up to which length there is a place for it."""

from __future__ import annotations

from typing import Any

from conformance import upstream

# The attributes that say how long a table of positions is. Rotary positions have no table, but waiting costs little.
POSITIONS = ("max_position_embeddings", "max_target_positions", "n_positions", "max_seq_len", "context_length")


def may_defer(outputs: Any, kwargs: dict[str, Any], config: Any, outlives: bool, vocabulary: int) -> bool:
    """Whether one step more can be taken and undone. Asked after the prefill: only then do some caches know.

    Not in the loop of an assistant, whose tokens the other model waits for. Not with a pad id that no embedding
    has: the step too many would feed it. And where the cache outlives the call, only if it can be put back, says
    so, and shows in the model's outputs.
    """
    if getattr(config, "is_assistant", False) or not pads_within(config, vocabulary):
        return False
    cache = upstream.cache_of(outputs)
    if not outlives:
        return True
    if cache is None:
        return upstream.cache_name(kwargs) is None
    return upstream.can_be_put_back(cache)


def pads_within(config: Any, vocabulary: int) -> bool:
    """Whether the pad id is one that the model can be fed, or there is none. Asks no tensor."""
    pad = config.pad_token_id
    return pad is None or 0 <= int(pad) < vocabulary


def longest(model: Any, cache: Any, length: int) -> int:
    """How many tokens a row may have when its last one is fed: by the static cache, and by the table of positions.

    Asked before the prefill over `length` tokens, when a cache that is passed in may hold some of them already; where
    it holds more, those come before the first of these.
    """
    config = model.config.get_text_config(decoder=True)
    sizes = [getattr(config, name, None) for name in POSITIONS]
    limits = [size for size in sizes if isinstance(size, int) and size > 0]
    fixed = upstream.fixed_size(cache)
    if fixed is not None:
        held = upstream.length_of(cache) or 0
        limits.append(fixed if held < length else fixed - held)
    return min(limits, default=2**62)
