# ruff: noqa: INP001
"""A placed model saved and loaded again, at once and after it has decoded."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from typing import Any

import torch

from conformance.reporting.scripts.frame import CALL, INPUTS, SETTINGS, SHARDS  # noqa: F401 - the call uses the others
from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"
BEYOND = ("loaded_as",)


def lost(model: Any, base: Any) -> dict[str, str]:
    """The weights of the undispatched model that are others, or none, after the placed one is saved and loaded."""
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder, **SHARDS)
    again = type(base).from_pretrained(folder, dtype=base.dtype).state_dict()
    saved = {n: w for n, w in base.state_dict().items() if n not in (base._keys_to_ignore_on_save or ())}
    return {n: "differs" for n, w in saved.items() if n not in again or not torch.equal(w, again[n])}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The weights as they were saved, and as they are; a decoding that raises says nothing."""
    base, answers = base_model(), []
    model = placed(base)
    wrong = lost(model, base)
    with suppress(Exception):
        answers.append(CALL(model, base))
    if answers and not wrong:
        wrong = lost(model, base)
    return dict.fromkeys(wrong or ["weights"], "as saved"), wrong or {"weights": "as saved"}
