# ruff: noqa: INP001
"""Verifying drafts with `meta` as the default device."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import BY_KEYWORD, DRAFT, EXTRAS, INPUTS, SETTINGS, SPOKEN, make_model

ROWS = "first"


def decoded(device: str) -> dict[str, str]:
    """The tokens, with this default device around the call."""
    model, config = make_model(), GenerationConfig(**{**SETTINGS, "do_sample": False, "num_return_sequences": 1})
    model.generation_config.pad_token_id = None
    extras: dict[str, Any] = dict(EXTRAS)
    for name, value in SPOKEN.items():
        setattr(config, name, None if BY_KEYWORD else value)
        if BY_KEYWORD and value is not None:
            extras[name] = value
    if DRAFT:
        extras["assistant_model"] = assistant = make_model()
        assistant.generation_config.num_assistant_tokens = DRAFT
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
    with torch.device(device):
        out = model.generate(**INPUTS, generation_config=config, **extras)
    return {"tokens": str(out.sequences.tolist())}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """With the CPU as the default device, and with `meta`."""
    return decoded("cpu"), decoded("meta")
