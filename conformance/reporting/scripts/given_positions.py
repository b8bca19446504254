# ruff: noqa: INP001
"""A prompt that reaches a call with the positions that would be counted."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def given(_: Any) -> dict[str, Any]:
    """The keywords of `generate`."""
    return {**INPUTS, "position_ids": (INPUTS["attention_mask"].cumsum(-1) - 1).clamp(min=0)}
