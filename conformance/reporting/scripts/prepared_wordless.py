# ruff: noqa: INP001
"""A cache of a class of the caller's that does not say whether it can be put back."""

from __future__ import annotations

from typing import Any


def prepared(cache: Any) -> Any:
    """The cache that is passed."""
    kind = type(cache)
    cache.__class__ = type(kind.__name__, (kind,), {"is_croppable": property(lambda own: own.no_such_word)})
    return cache
