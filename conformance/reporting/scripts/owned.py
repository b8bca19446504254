# ruff: noqa: INP001
"""What of the caller's a drafted call changes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.stops import stops


def owned(raising: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The inputs and the configs of both models, before and after the call."""
    model, config = make_model(), GenerationConfig(**SETTINGS | CHANGES)
    keywords = helped(model) | stops()
    things = {"inputs": INPUTS, "generation_config": config}
    for name, one in {"model": model, "assistant": keywords.get("assistant_model", model)}.items():
        things |= {f"{name}.config": one.config, f"{name}.generation_config": one.generation_config}
    before = leaves(things, "")
    torch.manual_seed(SEED)
    with suppress(Exception):
        model.generate(**INPUTS, generation_config=config, **keywords, **raising)
    return before, leaves(things, "")
