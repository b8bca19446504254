# ruff: noqa: INP001
"""A row of a batch, against the same row alone."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import ALONE, INPUTS, ROW, SEED, SETTINGS, make_model


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of a row alone, fed the tokens that it got in the batch, and its logits in the batch."""
    torch.manual_seed(SEED)
    config = GenerationConfig(**SETTINGS)
    out = make_model().generate(**INPUTS, generation_config=config)
    tokens = out.sequences[ROW, -len(out.logits) :].tolist()
    steps = next((n for n, token in enumerate(tokens, 1) if token in (config.eos_token_id or [])), len(tokens))
    how = {"tokens": torch.tensor([tokens[: steps - 1]], dtype=torch.long), "groups": [1] * (steps - 1)}
    alone = make_model().generate(**ALONE, generation_config=config, custom_generate=feed, **how)
    return alone[0], torch.stack(out.logits)[:steps, ROW]
