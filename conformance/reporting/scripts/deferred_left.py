# ruff: noqa: INP001
"""The cache that is left by a call that stops one step late, against that of one that stops at once."""

from __future__ import annotations

from contextlib import nullcontext

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.frame import make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.shown import shown
from conformance.reporting.scripts.which import which

ROWS = "all"
UNSEEN = ("recording",)
INSTEAD = {"second": "deferred_second"}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What the caches hold after stopping at once, and after stopping one step late."""
    first, late = (shown(which(*calling(make_model(), how)), "left") for how in (nullcontext, deferred))
    return first, late
