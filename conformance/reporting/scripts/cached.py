# ruff: noqa: INP001
"""A row alone with the cache, against recomputing everything."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.recompute import recompute

UNSEEN = ("scores", "sequences", "padding")
INSTEAD = {"continuation": "continued"}


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits recomputed under the tokens that decoding with the cache gave, and its own."""
    torch.manual_seed(SEED)
    out = make_model().generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS))
    start = out.sequences.shape[1] - len(out.logits)
    return recompute(out.sequences[:, :-1], start), torch.cat(out.logits)
