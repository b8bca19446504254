# ruff: noqa: INP001
"""Decoding with drafts of any kind, against plain decoding."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.compared import compared
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops

UNSEEN = ("scores", "sequences")
ROWS = "first"


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of plain decoding, and those under the drafts."""
    model = make_model()
    keywords, config = arriving(model) | helped(model) | stops(), GenerationConfig(**SETTINGS | CHANGES)
    torch.manual_seed(SEED)
    out = model.generate(**keywords, generation_config=config)
    return compared(out)
