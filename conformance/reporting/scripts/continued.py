# ruff: noqa: INP001
"""Given tokens fed one by one onto the cache, against recomputing everything."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SETTINGS, TOKENS, make_model
from conformance.reporting.scripts.recompute import recompute

UNSEEN = ("scores", "sequences", "padding")
ROWS = "first"
ROOM_FOR = "TOKENS"


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits recomputed under the tokens, and those of decoding with the cache where only they are allowed."""
    following, config = iter([*TOKENS, 0]), GenerationConfig(**SETTINGS)
    out = make_model().generate(
        **INPUTS, generation_config=config, prefix_allowed_tokens_fn=lambda *_: [next(following)]
    )
    start = out.sequences.shape[1] - len(out.logits)
    return recompute(out.sequences[:, :-1], start), torch.cat(out.logits)
