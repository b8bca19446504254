# ruff: noqa: INP001
"""The same call twice on the same model, whatever it drafts or continues."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.stops import stops

ROWS = "running"
WHOLE_OUTCOME = True


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcome of the call, and that of the same call again."""
    model, outs = make_model(), []
    for _ in range(2):
        keywords = arriving(model) | helped(model) | stops()
        torch.manual_seed(SEED)
        out = model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
        outs.append(leaves({**out, "generator": torch.get_rng_state()}, "output"))
    return outs[0], outs[1]
