# ruff: noqa: INP001
"""The cache that a drafted call leaves, against the one that plain decoding leaves."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.under_the_same import plain_and_drafted

ROWS = "first"
UNSEEN = ("cache keys", "cache values", "cache conv", "cache recurrent")
BEYOND = ("chunk", "embeds", "turns", "bare", "static")


def left(out: Any) -> dict[str, str]:
    """All that the cache says of itself, without the states."""
    cache = next(out[name] for name in ("cache", "past_key_values", "cache_params") if out.get(name) is not None)
    said = {"length": str(cache.get_seq_length()), **leaves(cache, "cache")}
    return {path: text for path, text in said.items() if not text.startswith("torch.")}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What the cache of plain decoding under the same tokens says of itself, and what that of the call says."""
    plain, out = plain_and_drafted()
    return left(plain), left(out)
