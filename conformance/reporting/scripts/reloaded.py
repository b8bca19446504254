# ruff: noqa: INP001
"""A placed model saved and loaded again, at once and after it has decoded."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from typing import Any

import torch

from conformance.reporting.scripts.placing import answer, base_model, placed

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Its weights, as those of the undispatched model."""
    base = base_model()
    model = placed(base)
    wrong = _lost(model, base)
    if not wrong and _decodes(model, base):
        wrong = _lost(model, base)
    return dict.fromkeys(wrong or ["weights"], "as saved"), wrong or {"weights": "as saved"}


def _decodes(model: Any, base: Any) -> bool:
    with suppress(Exception):
        answer(model, base)
        return True
    return False


def _lost(model: Any, base: Any) -> dict[str, str]:
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    again = type(base).from_pretrained(folder, dtype=base.dtype).state_dict()
    return {n: "differs" for n, w in base.state_dict().items() if n not in again or not torch.equal(w, again[n])}
