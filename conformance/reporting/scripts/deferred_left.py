# ruff: noqa: INP001
"""The cache that is left by a call that stops one step late, against that of one that stops at once."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.shown import shown
from conformance.reporting.scripts.which import which

ROWS = "all"
UNSEEN = ("recording",)
INSTEAD = {"second": "deferred_second"}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What the caches hold after stopping at once, and after stopping one step late."""
    left = []
    for how in (nullcontext, deferred):
        model = make_model()
        keywords = given(model)
        torch.manual_seed(SEED)
        with how():
            out = model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
        left.append(shown(which(keywords, out), "left"))
    return left[0], left[1]
