# ruff: noqa: INP001
"""A prompt that reaches a call as its tensors."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def given(_: Any) -> dict[str, Any]:
    """The keywords of `generate`."""
    return INPUTS
