# ruff: noqa: INP001
"""A call that raises: there is nothing to compare."""

from __future__ import annotations

from typing import Any


def compared(out: Any) -> tuple[Any, Any]:
    """What did not raise."""
    return out, out
