# ruff: noqa: INP001
"""Hidden states and attentions under drafts, against those of plain decoding."""

from __future__ import annotations

from conformance.reporting.scripts.gaps import gaps
from conformance.reporting.scripts.under_the_same import plain_and_drafted

ROWS = "first"
BEYOND = ("chunk", "embeds", "turns", "bare")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What every recorded state has to be, and is."""
    plain, out = plain_and_drafted()
    return gaps(plain, plain), gaps(out, plain)
