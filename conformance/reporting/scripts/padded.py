# ruff: noqa: INP001
"""A row of a batch, against the same row alone."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ALONE, INPUTS, ROW, SEED, SETTINGS, make_model

UNSEEN = ("scores", "sequences", "padding")
ROWS = "all"


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of a row alone, where only the tokens that it got in the batch are allowed, and those in the batch."""
    torch.manual_seed(SEED)
    config = GenerationConfig(**SETTINGS)
    out = make_model().generate(**INPUTS, generation_config=config)
    tokens, ends = out.sequences[ROW, -len(out.logits) :].tolist(), config.eos_token_id or []
    config.max_new_tokens = steps = next((n for n, token in enumerate(tokens, 1) if token in ends), len(tokens))
    following = iter(tokens)
    same = {"prefix_allowed_tokens_fn": lambda *_: [next(following)]}
    alone = make_model().generate(**ALONE, generation_config=config, **same)
    return torch.cat(alone.logits), torch.stack(out.logits)[:steps, ROW]
