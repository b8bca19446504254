# ruff: noqa: INP001
"""Given tokens fed one by one onto the cache, against recomputing everything."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import GROUPS, INPUTS, SETTINGS, TOKENS, make_model
from conformance.reporting.scripts.recompute import recompute


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits recomputed under the tokens, and those of feeding them onto the cache one by one."""
    model, how = make_model(), {"custom_generate": feed, "tokens": TOKENS, "groups": [1] * sum(GROUPS)}
    fed = model.generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS), **how)
    prompt = INPUTS["input_ids"]
    if model.config.is_encoder_decoder:
        prompt = torch.tensor([[model.generation_config.decoder_start_token_id]])
    return recompute(torch.cat([prompt, TOKENS], dim=1), prompt.shape[1]), fed[0]
