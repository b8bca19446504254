# ruff: noqa: INP001
"""What a call changes beside what it returns."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from conformance.reporting.scripts.frame import KEPT, SEED, make_model
from conformance.reporting.scripts.given import given
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.told import told

ROWS = "all"
BEYOND = ("quantized", "raises")


def belongings(model: Any, call: dict[str, Any]) -> dict[str, str]:
    """What the caller passes, the model's configs, and all that its modules hold beside their parameters."""
    owned = {"call": call, "model.config": model.config}
    owned["model.generation_config"] = model.generation_config
    for name, module in model.named_modules():
        owned[name] = {k: v for k, v in vars(module).items() if k not in KEPT and not k.endswith("_hooks")}
    return leaves(owned, "")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """All that belongs to the caller and to the model, before and after a call."""
    model = make_model()
    call = {**given(model), **told(model)}
    before = belongings(model, call)
    torch.manual_seed(SEED)
    with suppress(Exception):
        model.generate(**call)
    return before, belongings(model, call)
