# ruff: noqa: INP001
"""A static cache, against the dynamic cache."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import INPUTS, ROW, SEED, SETTINGS, make_model


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits with the dynamic cache, fed the tokens that the static cache gave, and those with the static one."""
    torch.manual_seed(SEED)
    config, model = GenerationConfig(**SETTINGS, cache_implementation="static", disable_compile=True), make_model()
    out = model.generate(**INPUTS, generation_config=config)
    steps = len(out.logits)
    how = {"tokens": out.sequences[:, -steps:-1], "groups": [1] * (steps - 1), "custom_generate": feed}
    dynamic = make_model().generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS), **how)
    tokens, ends = out.sequences[ROW, -steps:].tolist(), config.eos_token_id or []
    steps = next((n for n, token in enumerate(tokens, 1) if token in ends), steps)
    return dynamic[ROW, :steps], torch.stack(out.logits)[:steps, ROW]
