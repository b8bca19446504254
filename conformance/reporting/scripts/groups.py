# ruff: noqa: INP001
"""Several tokens at once onto a filled cache, against one by one."""

from __future__ import annotations

from conformance.reporting.scripts.close import close
from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import CONTINUATION, GROUPS, ROWS, batch


def main() -> None:
    """Feed the same tokens one by one and in groups onto the same filled cache."""
    one_by_one = feed(batch(ROWS[:1]), [CONTINUATION], [1] * len(CONTINUATION))
    in_groups = feed(batch(ROWS[:1]), [CONTINUATION], GROUPS)
    close("logits", [step[0] for step in one_by_one], [step[0] for step in in_groups])
