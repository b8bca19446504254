# ruff: noqa: INP001
"""A model placed as a report says."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import accelerate  # noqa: F401 - what the constants hold uses it
import transformers  # noqa: F401

from conformance.reporting.scripts.frame import PLACE, REMAKE, SCALE, WEIGHT_SEED, fill, make_model
from conformance.reporting.scripts.stored import store


def base_model() -> Any:
    """The model of the report, not placed anywhere."""
    model = REMAKE(make_model())
    fill(model.eval(), WEIGHT_SEED, SCALE)
    return model


def placed(base: Any) -> Any:
    """The same model where the report puts it."""
    model, folder, off = copy.deepcopy(base), tempfile.mkdtemp(), tempfile.mkdtemp()
    store(model, folder)
    model = PLACE(model, folder, off)
    model.generation_config = base.generation_config
    return model
