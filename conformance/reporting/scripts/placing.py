# ruff: noqa: INP001
"""A model placed as a report says, and its answer."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import accelerate  # noqa: F401 - what the constants hold uses it
import torch
import transformers  # noqa: F401

from conformance.reporting.scripts.frame import (  # noqa: F401
    CALL,
    INPUTS,
    PLACE,
    REMAKE,
    SCALE,
    SETTINGS,
    WEIGHT_SEED,
    fill,
    make_model,
)


def base_model() -> Any:
    """The model of the report, not placed anywhere."""
    model = REMAKE(make_model())
    fill(model.eval(), WEIGHT_SEED, SCALE)
    return model


def placed(base: Any) -> Any:
    """The same model where the report puts it."""
    model, folder, off = copy.deepcopy(base), tempfile.mkdtemp(), tempfile.mkdtemp()
    model.save_pretrained(folder)
    model = PLACE(model, folder, off)
    model.generation_config = base.generation_config
    return model


def answer(model: Any, base: Any) -> dict[str, Any]:
    """What a model says; `base` gives embeddings and an assistant."""
    torch.manual_seed(0)
    out = CALL(model, base)
    logits = [step.tolist() for step in out.logits] if hasattr(out, "logits") and out.logits else []
    return {"sequences": getattr(out, "sequences", out).tolist(), "logits": logits}
