"""The end of a run on the controller: confirm the findings, then sum up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from conformance.options import Options
from conformance.reporting.confirm import confirm
from conformance.reporting.summary import summarise


def finish(options: Options, *, started: float, interrupted: bool) -> dict[str, Any]:
    """Execute every finding's script in a fresh process, write `summary.json`, and return it."""
    ran = time.time() - started
    if not interrupted:
        confirm(Path(options.report or "."), processes=max(1, options.workers))
    return summarise(options, seconds=ran, interrupted=interrupted)
