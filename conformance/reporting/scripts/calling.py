# ruff: noqa: INP001
"""The caller's call of `generate`."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS


def calling(model: Any, how: Any, **more: Any) -> tuple[dict[str, Any], Any]:
    """What the call is given in the block that `how` makes, without `more`, and what it returns."""
    keywords = given(model)
    torch.manual_seed(SEED)
    with how():
        out = model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES), **more)
    return keywords, out
