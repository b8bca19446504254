# ruff: noqa: INP001
"""A placed model saved and loaded again."""

from __future__ import annotations

import tempfile

import torch

from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Its weights, as those of the undispatched model."""
    base, folder = base_model(), tempfile.mkdtemp()
    placed(base).save_pretrained(folder)
    again = type(base).from_pretrained(folder, dtype=base.dtype).state_dict()
    wrong = {n: "differs" for n, w in base.state_dict().items() if n not in again or not torch.equal(w, again[n])}
    return dict.fromkeys(wrong or ["weights"], "as saved"), wrong or {"weights": "as saved"}
