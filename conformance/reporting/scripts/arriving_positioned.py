# ruff: noqa: INP001
"""A prompt that reaches the model as its ids, all at once, with their positions."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS, POSITIONED


def arriving(_: Any) -> dict[str, Any]:
    """What `generate` is given."""
    positions = (INPUTS["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    return {**INPUTS, **({"position_ids": positions} if POSITIONED else {})}
