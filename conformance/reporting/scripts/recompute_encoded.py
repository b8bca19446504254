# ruff: noqa: INP001
"""As `recompute`, for an encoder-decoder model, whose decoder's tokens are recomputed."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.frame import INPUTS, make_model


@torch.no_grad()
def recompute(sequence: torch.Tensor, start: int) -> torch.Tensor:
    """The logits after the first `start` tokens and after each that follows: one forward each, over all, no cache."""
    model, logits = make_model(), []
    for end in range(start, sequence.shape[1] + 1):
        args = {**INPUTS, "decoder_input_ids": sequence[:, :end]}
        if "decoder_attention_mask" in args:
            args["decoder_attention_mask"] = torch.ones_like(sequence[:, :end])
        logits.append(model(**args, use_cache=False).logits[0, -1])
    return torch.stack(logits)
