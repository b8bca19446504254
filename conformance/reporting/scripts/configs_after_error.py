# ruff: noqa: INP001
"""Inputs and configs of both models, before and after a drafted call in which a user's processor raises."""

from __future__ import annotations

from conformance.reporting.scripts.frame import RAISING
from conformance.reporting.scripts.owned import owned

ROWS = "first"
BEYOND = ("schedule", "embeds", "turns", "bare")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """All that belongs to the caller, before and after the call."""
    return owned(RAISING)
