# ruff: noqa: INP001
"""Everything recomputed without a cache, as `conformance.oracle` does."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from conformance.reporting.scripts.frame import INPUTS, make_model


@torch.no_grad()
def recompute(sequence: torch.Tensor, start: int) -> torch.Tensor:
    """The logits after the first `start` tokens and after each that follows, each by one forward over all, no cache."""
    model, logits = make_model(), []
    taken = inspect.signature(model.forward).parameters
    for end in range(start, sequence.shape[1] + 1):
        ids = sequence[:, :end]
        args: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        args["position_ids"] = torch.arange(end)[None]
        if model.config.is_encoder_decoder:
            args = {**INPUTS, "decoder_input_ids": ids}
        out = model(**{name: value for name, value in args.items() if name in taken}, use_cache=False)
        logits.append(out.logits[0, -1])
    return torch.stack(logits)
