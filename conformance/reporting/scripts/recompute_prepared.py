# ruff: noqa: INP001
"""As `recompute`, for a type whose own preparation is part of the function that it decodes with."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.frame import make_model


@torch.no_grad()
def recompute(sequence: torch.Tensor, start: int) -> torch.Tensor:
    """The logits after the first `start` tokens and after each that follows: one forward each, over all, no cache."""
    model, logits = make_model(), []
    for end in range(start, sequence.shape[1] + 1):
        ids, mask = sequence[:, :end], torch.ones_like(sequence[:, :end])
        args = model.prepare_inputs_for_generation(ids, attention_mask=mask, use_cache=False)
        logits.append(model(**{**args, "use_cache": False}).logits[0, -1])
    return torch.stack(logits)
