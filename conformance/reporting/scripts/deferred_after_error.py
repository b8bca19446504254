# ruff: noqa: INP001
"""The next call on a model after a hook has raised where stopping was deferred, against stopping at once."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.hook import hooked
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.said import said

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("cache", "rng", "states", "attentions", "hidden_states", "scores")


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the next call returns after stopping at once, and after stopping one step late."""
    outs = []
    for how in (nullcontext, deferred):
        model, config = make_model(), GenerationConfig(**SETTINGS | CHANGES)
        with suppress(ValueError), how():
            model.generate(**given(model), generation_config=config, **hooked())
        keywords = given(model)
        torch.manual_seed(SEED)
        outs.append(said(model.generate(**keywords, generation_config=config)))
    return outs[0], outs[1]
