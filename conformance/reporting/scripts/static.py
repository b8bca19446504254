# ruff: noqa: INP001
"""A static cache, against the dynamic cache."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, ROW, SEED, SETTINGS, make_model
from conformance.reporting.scripts.ready import ready

UNSEEN = ("scores", "sequences", "padding")
ROWS = "all"


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits with the dynamic cache, where only the tokens that the static cache gave are allowed, and its own."""
    torch.manual_seed(SEED)
    config = GenerationConfig(**SETTINGS, cache_implementation="static", disable_compile=True)
    out = ready().generate(**INPUTS, generation_config=config)
    same = {"prefix_allowed_tokens_fn": lambda row, ids: [int(out.sequences[row, len(ids)])]}
    dynamic = make_model().generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS), **same)
    tokens, ends = out.sequences[ROW, -len(out.logits) :].tolist(), config.eos_token_id or []
    steps = next((n for n, token in enumerate(tokens, 1) if token in ends), len(tokens))
    return torch.stack(dynamic.logits)[:steps, ROW], torch.stack(out.logits)[:steps, ROW]
