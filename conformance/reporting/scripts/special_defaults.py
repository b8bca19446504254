# ruff: noqa: INP001
"""Verifying drafts with `meta` as the default device."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.frame import BY_KEYWORD, INPUTS, SPOKEN, make_model
from conformance.reporting.scripts.speaking import speaking

ROWS = "first"


def decoded(device: str) -> dict[str, str]:
    """The tokens, with this default device around the call."""
    model, (config, extras) = make_model(), speaking(SPOKEN, BY_KEYWORD)
    model.generation_config.pad_token_id = None
    with torch.device(device):
        out = model.generate(**INPUTS, generation_config=config, **extras)
    return {"tokens": str(out.sequences.tolist())}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """With the CPU as the default device, and with `meta`."""
    return decoded("cpu"), decoded("meta")
