# ruff: noqa: INP001
"""The cache that outlives a call."""

from __future__ import annotations

from typing import Any


def which(keywords: dict[str, Any], out: Any) -> dict[str, Any]:
    """The keyword for the cache that was passed, or is returned, with it."""
    names = ("cache", "past_key_values", "cache_params", "state", "mems", "past_buckets_states")
    held = {name: keywords.get(name, getattr(out, name, None)) for name in names}
    return {name: cache for name, cache in held.items() if cache is not None}
