# ruff: noqa: INP001
"""A first call that makes its cache itself."""

from __future__ import annotations

from typing import Any


def begun() -> dict[str, Any]:
    """What the first call is given besides ids."""
    return {}
