# ruff: noqa: INP001
"""The same request told in another way, all that comes of it."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.given import given
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.told import told

ROWS = "all"
BEYOND = ("quantized", "static")
WHOLE_OUTCOME = True
INSTEAD = {"row": "told_row", "step": "told_row"}  # where it is computed otherwise, it is the same within rounding


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcome of the call told by a config, ids and a mask, and that of the call told as the report has it."""
    outs = []
    for plainly in (True, False):
        model = make_model()
        config = GenerationConfig(**SETTINGS)
        call = {**INPUTS, "generation_config": config} if plainly else {**given(model), **told(model)}
        torch.manual_seed(SEED)
        out = model.generate(**call)
        outs.append(leaves({**out, "generator": torch.get_rng_state()}, "output"))
    return outs[0], outs[1]
