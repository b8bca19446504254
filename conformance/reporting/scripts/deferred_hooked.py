# ruff: noqa: INP001
"""How a call ends whose hook is told to raise in a step that stopping at once does not take."""

from __future__ import annotations

from contextlib import nullcontext

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.frame import HOOK, make_model
from conformance.reporting.scripts.hook import Hook
from conformance.reporting.scripts.late import deferred

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """How it ends where the hook raises in the call after the last one that stopping at once makes."""
    counting, raising = Hook(), Hook()
    counting.left = 0
    calling(make_model(), nullcontext, **{HOOK: [counting]})
    raising.left = 1 - counting.left
    try:
        calling(make_model(), deferred, **{HOOK: [raising]})
        end = "returns"
    except ValueError as error:
        end = f"raises {error!r}"
    return {"the call": "returns"}, {"the call": end}
