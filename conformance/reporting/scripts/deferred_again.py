# ruff: noqa: INP001
"""The second of two calls on one model that both stop one step late, against that of two that stop at once."""

from __future__ import annotations

from contextlib import nullcontext

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.frame import make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.shown import shown

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("rng",)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes of the second call."""
    outs = []
    for how in (nullcontext, deferred):
        model = make_model()
        outs.append([shown(calling(model, how)[1], "output") for _ in range(2)][1])
    return outs[0], outs[1]
