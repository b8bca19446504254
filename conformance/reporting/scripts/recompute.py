# ruff: noqa: INP001
"""Everything recomputed without a cache, as `conformance.oracle` does."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from conformance.reporting.scripts.frame import batch, make_model


@torch.no_grad()
def recompute(row: list[int], tokens: list[int]) -> list[torch.Tensor]:
    """The logits that predict each of the tokens, by one forward each over all that precedes it, without a cache."""
    model, inputs, logits = make_model(), batch([row]), []
    encoded = model.config.is_encoder_decoder
    start = [model.generation_config.decoder_start_token_id] if encoded else row
    for count in range(len(tokens)):
        ids = torch.tensor([start + tokens[:count]])
        args: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        args["position_ids"] = torch.arange(ids.shape[1])[None]
        args = {**inputs, "decoder_input_ids": ids} if encoded else args
        taken = inspect.signature(model.forward).parameters
        out = model(**{name: value for name, value in args.items() if name in taken}, use_cache=False)
        logits.append(out.logits[0, -1])
    return logits
