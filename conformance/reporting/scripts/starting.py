# ruff: noqa: INP001
"""Decoding of which the decoder is given more than its start token."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ALONE, INPUTS, ROW, SETTINGS, TOKENS, make_model


def starts(inputs: dict[str, Any], ids: torch.Tensor) -> dict[str, Any]:
    """The inputs, the decoder's ids in them these and all of them seen."""
    mask = {"decoder_attention_mask": torch.ones_like(ids)} if "decoder_attention_mask" in inputs else {}
    return {**inputs, "decoder_input_ids": ids, **mask}


def starting(**how: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of one row without a cache, one forward for each step, and those that decoding all rows gave it."""
    start = INPUTS["decoder_input_ids"]
    ids = torch.cat([start, torch.tensor([TOKENS] * len(start))], dim=1)
    config = GenerationConfig(**SETTINGS | {"max_new_tokens": 3, "num_return_sequences": 1} | how)
    out = make_model().generate(**starts(INPUTS, ids), generation_config=config)
    model, expected = make_model(), []
    for end in range(ids.shape[1], out.sequences.shape[1]):
        with torch.no_grad():
            whole = model(**starts(ALONE, out.sequences[ROW : ROW + 1, :end]), use_cache=False)
        expected.append(whole.logits[0, -1])
    return torch.stack(expected), torch.stack(out.logits)[:, ROW]
