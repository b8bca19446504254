# ruff: noqa: INP001
"""A call that stops one step late, against the same call that stops at once."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.shown import shown

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("rng", "streamed", "forwards", "calls", "inputs", "generation_config", "model.", "keywords")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes of stopping at once, and of stopping one step late."""
    outs = []
    for how in (nullcontext, deferred):
        model = make_model()
        keywords = given(model)
        torch.manual_seed(SEED)
        with how():
            out = model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
        outs.append(shown(out, "output"))
    return outs[0], outs[1]
