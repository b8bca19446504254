# ruff: noqa: INP001
"""A prompt that reaches the model as its ids, all at once."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def arriving(_: Any) -> dict[str, Any]:
    """What `generate` is given."""
    return INPUTS
