# ruff: noqa: INP001
"""What a call gave for one of several rows, against plain decoding of the same tokens."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ALONE, ENDS, ROW, SETTINGS, START, make_model


def compared(out: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of the row alone, decoded plainly where only the tokens that came are allowed, and those that came."""
    tokens = out.sequences[ROW, START:].tolist()
    tokens = tokens[: next((n for n, token in enumerate(tokens, 1) if token in ENDS), len(tokens))]
    config = GenerationConfig(**SETTINGS | {"eos_token_id": None, "max_new_tokens": len(tokens)})
    following = iter(tokens)
    same = {"prefix_allowed_tokens_fn": lambda *_: [next(following)]}
    plain = make_model().generate(**ALONE, generation_config=config, **same)
    return torch.cat(plain.logits), torch.stack(out.logits)[: len(tokens) if ENDS else None, ROW]
