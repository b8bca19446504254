# ruff: noqa: INP001
"""What a call of one row gave, against plain decoding of the same tokens."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SETTINGS, START, make_model


def compared(out: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of plain decoding where only the tokens that came are allowed, and those that came."""
    tokens = out.sequences[0, START:].tolist()
    config = GenerationConfig(**SETTINGS | {"eos_token_id": None, "max_new_tokens": len(tokens)})
    following = iter(tokens)
    same = {"prefix_allowed_tokens_fn": lambda *_: [next(following)]}
    plain = make_model().generate(**INPUTS, generation_config=config, **same)
    return torch.cat(plain.logits), torch.cat(out.logits)
