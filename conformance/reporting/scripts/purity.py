# ruff: noqa: INP001
"""What a call changes beside what it returns."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, KEPT, SEED, SETTINGS, make_model
from conformance.reporting.scripts.leaves import leaves

ROWS = "all"


def belongings(model: Any, config: GenerationConfig) -> dict[str, str]:
    """The caller's tensors and configs, and all that the model's modules hold beside their parameters."""
    owned = {"inputs": INPUTS, "generation_config": config, "model.config": model.config}
    owned["model.generation_config"] = model.generation_config
    for name, module in model.named_modules():
        owned[name] = {k: v for k, v in vars(module).items() if k not in KEPT and not k.endswith("_hooks")}
    return leaves(owned, "")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """All that belongs to the caller and to the model, before and after a call."""
    model, config = make_model(), GenerationConfig(**SETTINGS)
    before = belongings(model, config)
    torch.manual_seed(SEED)
    with suppress(Exception):
        model.generate(**INPUTS, generation_config=config)
    return before, belongings(model, config)
