# ruff: noqa: INP001
"""A call that stops one step late, against the same call that stops at once."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.leaves import leaves

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("rng", "streamed", "forwards", "calls")
PLAN = ("lag", "streamed", "tensor_only", "uncached", "pad_beyond", "assistant", "raises", "raises_at")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes of stopping at once, and of stopping one step late."""
    outs = []
    for how in (nullcontext, deferred):
        torch.manual_seed(SEED)
        with how():
            out = make_model().generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS | CHANGES))
        outs.append(leaves(out, "output"))
    return outs[0], outs[1]
