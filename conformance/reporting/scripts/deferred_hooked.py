# ruff: noqa: INP001
"""How a call ends whose hook is told to raise in a step that stopping at once does not take."""

from __future__ import annotations

from contextlib import nullcontext

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.frame import make_model
from conformance.reporting.scripts.hook import hooked
from conformance.reporting.scripts.late import deferred

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """How it ends stopping at once, and stopping one step late."""
    ends = []
    for how in (nullcontext, deferred):
        try:
            calling(make_model(), how, **hooked())
            ends.append({"the call": "returns"})
        except ValueError as error:
            ends.append({"the call": f"raises {error!r}"})
    return ends[0], ends[1]
