# ruff: noqa: INP001
"""The next call on a model after a hook has raised where stopping was deferred, against stopping at once."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.frame import make_model
from conformance.reporting.scripts.hook import hooked
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.said import said

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("cache", "rng", "states", "attentions", "hidden_states", "scores")
BEYOND = ("again",)


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the next call returns after stopping at once, and after stopping one step late."""
    outs = []
    for how in (nullcontext, deferred):
        model = make_model()
        with suppress(ValueError):
            calling(model, how, **hooked())
        outs.append(said(calling(model, nullcontext)[1]))
    return outs[0], outs[1]
