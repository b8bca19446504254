# ruff: noqa: INP001
"""How a row of an outcome is compared when its logits are what differs; see also `scores`."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.close import close


def agree(out: Any, row: int, expected: list[torch.Tensor], inputs: dict[str, Any]) -> None:
    """Compare the logits of every step of a row."""
    close("logits", expected, [step[row] for step in out.logits[: len(expected)]])
