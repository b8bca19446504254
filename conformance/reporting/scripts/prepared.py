# ruff: noqa: INP001
"""A cache of the caller's that is left as it is."""

from __future__ import annotations

from typing import Any


def prepared(cache: Any) -> Any:
    """The cache that is passed."""
    return cache
