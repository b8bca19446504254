# ruff: noqa: INP001
"""A cache of the caller's that records its past states."""

from __future__ import annotations

from typing import Any


def prepared(cache: Any) -> Any:
    """The cache that is passed."""
    cache.activate_past_recording()
    return cache
