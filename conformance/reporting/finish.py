"""The end of a run on the controller: confirm the findings, then sum up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from conformance.findings import Findings
from conformance.options import Options
from conformance.records import read
from conformance.reporting.confirm import Tell, confirm, untold
from conformance.reporting.page import write_finding
from conformance.reporting.reports import write_all
from conformance.reporting.summary import summarise


def finish(options: Options, *, started: float, interrupted: bool, tell: Tell = untold) -> dict[str, Any]:
    """Execute every finding's script in a fresh process, write `summary.json` and the reports, and return it.

    `tell` is called with a number and the total before each script.
    """
    ran, folder = time.time() - started, Path(options.report or ".")
    findings = Findings(folder)
    findings.merge()
    for finding in findings:  # again, in one process: workers may have written over each other's
        write_finding(folder, finding)
    try:
        if not interrupted:
            confirm(folder, processes=max(1, options.workers), tell=tell)
    except KeyboardInterrupt:
        interrupted = True  # what is not confirmed by then stays so
    summary = summarise(options, seconds=ran, interrupted=interrupted)
    write_all(folder, summary, list(read(folder)))
    return summary
