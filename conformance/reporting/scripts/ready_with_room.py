# ruff: noqa: INP001
"""A model after a call that asked for a longer static cache, and ended at its first token."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, ROOM, SETTINGS, make_model


def ready() -> Any:
    """A model that an earlier call asked for more places."""
    model = make_model()
    longer = {name: SETTINGS[name] + ROOM for name in ("max_new_tokens", "max_length") if name in SETTINGS}
    config = GenerationConfig(**SETTINGS | longer, cache_implementation="static", disable_compile=True)
    at_once = [lambda ids, *_, **__: torch.ones(len(ids), dtype=torch.bool)]
    model.generate(**INPUTS, generation_config=config, stopping_criteria=at_once)
    return model
