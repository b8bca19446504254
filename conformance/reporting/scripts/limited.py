# ruff: noqa: INP001
"""A limit of the caller's own that is more than the settings say, against plain decoding."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.compared import compared
from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.stops import stops

UNSEEN = ("scores", "sequences")
ROWS = "all"
BEYOND = ("bare", "positions")


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of plain decoding, and those of the call."""
    model, config = make_model(), GenerationConfig(**SETTINGS | CHANGES)
    torch.manual_seed(SEED)
    out = model.generate(**INPUTS, **stops(), generation_config=config)
    return compared(out)
