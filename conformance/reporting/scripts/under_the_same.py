# ruff: noqa: INP001
"""Plain decoding under the tokens of a drafted call."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, START, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops


def plain_and_drafted() -> tuple[Any, Any]:
    """What plain decoding gives where only the tokens of the call are allowed, and what the call gives."""
    model = make_model()
    keywords, config = helped(model) | stops(), GenerationConfig(**SETTINGS | CHANGES)
    torch.manual_seed(SEED)
    out = model.generate(**INPUTS, generation_config=config, **keywords)
    tokens = out.sequences[0, START:].tolist()
    config = GenerationConfig(**SETTINGS | {"eos_token_id": None, "do_sample": False, "max_new_tokens": len(tokens)})
    same = {"prefix_allowed_tokens_fn": lambda _, ids: [tokens[len(ids) - START]]}
    return make_model().generate(**INPUTS, generation_config=config, **same), out
