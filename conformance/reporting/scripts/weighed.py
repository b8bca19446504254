# ruff: noqa: INP001
"""The weights that a placed model runs with, beside those of the same model loaded without a placement."""

from __future__ import annotations

import tempfile

import torch

from conformance.reporting.scripts.brought import running
from conformance.reporting.scripts.frame import LOAD
from conformance.reporting.scripts.placing import base_model, placed
from conformance.reporting.scripts.stored import store

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Their values and dtypes."""
    base, folder = base_model(), tempfile.mkdtemp()
    got = running(placed(base))
    store(base, folder)
    wanted = running(LOAD(base, folder))
    names = [name for name in wanted if name in got]
    wrong = [n for n in names if got[n].dtype != wanted[n].dtype or not torch.equal(got[n], wanted[n])]
    return dict.fromkeys(wrong or ["weights"], "same"), dict.fromkeys(wrong, "differs") or {"weights": "same"}
