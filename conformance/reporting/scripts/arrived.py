# ruff: noqa: INP001
"""A prompt that arrives as embeddings, onto a cache or in chunks, against plain decoding."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.compared import compared
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model

UNSEEN = ("scores", "sequences")
ROWS = "all"
BEYOND = {
    "embeddings-match-ids": ("turns", "bare", "chunk", "drafter", "beyond"),
    "continuing-matches-from-scratch": ("chunk", "drafter", "beyond"),
    "chunked-prefill-matches-whole": ("drafter", "beyond"),
}


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of plain decoding, and those of the call."""
    model = make_model()
    inputs = arriving(model)
    torch.manual_seed(SEED)
    out = model.generate(**inputs, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    return compared(out)
