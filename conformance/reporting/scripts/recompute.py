# ruff: noqa: INP001
"""Everything recomputed without a cache, as `conformance.oracle` does."""

from __future__ import annotations

import inspect

import torch

from conformance.reporting.scripts.frame import make_model


@torch.no_grad()
def recompute(sequence: torch.Tensor, start: int) -> torch.Tensor:
    """The logits after the first `start` tokens and after each that follows: one forward each, over all, no cache."""
    model, logits = make_model(), []
    taken = inspect.signature(model.forward).parameters
    for end in range(start, sequence.shape[1] + 1):
        ids, positions = sequence[:, :end], torch.arange(end)[None]
        args = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "position_ids": positions}
        out = model(**{name: value for name, value in args.items() if name in taken}, use_cache=False)
        logits.append(out.logits[0, -1])
    return torch.stack(logits)
