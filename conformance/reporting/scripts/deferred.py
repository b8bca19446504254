# ruff: noqa: INP001
"""A call that stops one step late, against the same call that stops at once."""

from __future__ import annotations

from contextlib import nullcontext

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.frame import make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.shown import shown

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("rng", "streamed", "forwards", "calls", "inputs", "generation_config", "model.", "keywords")
INSTEAD = {"second": "deferred_again"}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes of stopping at once, and of stopping one step late."""
    first, late = (shown(calling(make_model(), how)[1], "output") for how in (nullcontext, deferred))
    return first, late
