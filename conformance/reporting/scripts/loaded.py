# ruff: noqa: INP001
"""A model loaded from what it was saved in, without a placement."""

from __future__ import annotations

import tempfile

import torch

from conformance.reporting.scripts.frame import LOAD
from conformance.reporting.scripts.placing import base_model
from conformance.reporting.scripts.stored import store

ROWS = "all"
UNSEEN = ("tied group",)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The weights as they were saved, and as they are; but for those that its class never saves."""
    base, folder = base_model(), tempfile.mkdtemp()
    store(base, folder)
    again, left_out = LOAD(base, folder).state_dict(), base._keys_to_ignore_on_save or ()
    kept = {name: weight for name, weight in base.state_dict().items() if name not in left_out}
    wrong = {n: "differs" for n, w in kept.items() if n not in again or not torch.equal(w.to(again[n].dtype), again[n])}
    return dict.fromkeys(wrong or ["weights"], "as saved"), wrong or {"weights": "as saved"}
