# ruff: noqa: INP001
"""A prompt that reaches a call without a mask, where nothing is padded."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def given(_: Any) -> dict[str, Any]:
    """The keywords of `generate`."""
    return {name: tensor for name, tensor in INPUTS.items() if name != "attention_mask" or not tensor.all()}
