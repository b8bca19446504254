# ruff: noqa: INP001
"""Given tokens fed one by one onto the cache, against recomputing everything."""

from __future__ import annotations

from conformance.reporting.scripts.close import close
from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import CONTINUATION, ROWS, batch
from conformance.reporting.scripts.recompute import recompute


def main() -> None:
    """Feed tokens one by one onto the cache, then recompute the logits under the same tokens."""
    one_by_one = feed(batch(ROWS[:1]), [CONTINUATION], [1] * len(CONTINUATION))
    close("logits", recompute(ROWS[0], [*CONTINUATION, 0]), [step[0] for step in one_by_one])
