# ruff: noqa: INP001
"""A second call that goes on from the first, all ids given."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import INPUTS


def following(sequences: Any) -> dict[str, Any]:
    """What `generate` is given."""
    new = sequences.shape[1] - INPUTS["input_ids"].shape[1]
    mask = torch.nn.functional.pad(INPUTS["attention_mask"], (0, new), value=1)
    return {"input_ids": sequences, "attention_mask": mask}
