# ruff: noqa: INP001
"""The same request told in another way, within rounding: a row of it against the row alone, told plainly."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.compared_row import compared
from conformance.reporting.scripts.frame import SEED, make_model
from conformance.reporting.scripts.given import given
from conformance.reporting.scripts.told import told

ROWS = "all"
UNSEEN = ("scores", "sequences", "padding")
BEYOND = ("quantized", "static")


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of a row alone, told plainly under the same tokens, and those of the call told otherwise."""
    model = make_model()
    call = {**given(model), **told(model)}
    torch.manual_seed(SEED)
    out = model.generate(**call)
    return compared(out)
