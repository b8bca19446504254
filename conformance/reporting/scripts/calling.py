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
    keywords, config = given(model), GenerationConfig(**SETTINGS | CHANGES)
    torch.manual_seed(SEED)
    with how():
        return keywords, model.generate(**keywords, generation_config=config, **more)
