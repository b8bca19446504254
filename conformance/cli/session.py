"""One pytest session over the suite, as `conformance run` starts it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conformance import interruption
from conformance.options import Options
from conformance.plugin import SUMMARY
from conformance.reporting.columns import say
from conformance.reporting.progress import Progress
from conformance.reporting.terminal import print_summary

LAST_LINES = 5
CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO}


class KeepSummary:
    """A pytest plugin that keeps the summary that the session made, and what went wrong where it made none."""

    summary: dict[str, object] | None = None
    error: str = ""

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """The session is over: take what it stashed."""
        self.summary = config.stash.get(SUMMARY, None)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """The suite may be impossible to collect, here or in a worker."""
        self._keep(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What an item needs may be impossible to make."""
        if report.when == "setup":
            self._keep(report)

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Pytest itself, or a plugin of it, may break."""
        self.error = self.error or str(excrepr)

    @pytest.hookimpl(optionalhook=True)  # of xdist, which is not there in one process
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker may be killed before it has anything to report."""
        if error is not None:
            self.error = self.error or f"worker {node.gateway.id} died: {error}"

    def _keep(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed:
            self.error = self.error or report.longreprtext

    def why(self) -> str:
        """The last lines of the first error, where an error says what is wrong."""
        lines = [line for line in self.error.splitlines() if line.strip()]
        return "\n".join(f"  {line}" for line in lines[-LAST_LINES:])


def run_session(options: Options, workers: int) -> int:
    """Run the suite with `workers` processes (0: this one) and print the end. Returns the exit code."""
    console, keeper = Console(), KeepSummary()
    interruption.watch()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    arguments = [
        *("--pyargs", "conformance.suite", "--conformance-options", options.to_json()),
        *("-p", "no:terminal", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."),
        f"--junitxml={Path(options.report or '.') / 'junit.xml'}",
    ]
    arguments += ["-n", str(workers), "--maxschedchunk", "1"] if workers else ["-p", "no:xdist"]
    try:
        status = pytest.main(arguments, plugins=[Progress(console, workers), keeper])
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        return _not_written(error, Path(options.report or "."), console)
    if keeper.summary is None:
        return _ended_early(status, keeper, console)
    print_summary(console, keeper.summary, options.report or ".")
    code = keeper.summary["exit_code"]
    assert isinstance(code, int)
    return code


def _not_written(error: OSError, report: Path, console: Console) -> int:
    """Say that the report has no end, and where what was found by then is. Returns the exit code."""
    where = f": {error.filename}" if error.filename else ""
    say(console)(f"conformance: the report cannot be written, {error.strerror or error}{where}")
    for found in sorted(report.glob("findings/*/finding.json")):
        say(console)(f"  found: {found.parent}")
    return 3


def _ended_early(status: int, keeper: KeepSummary, console: Console) -> int:
    """Say why there is nothing to sum up. Returns the exit code."""
    if status == pytest.ExitCode.INTERRUPTED and not keeper.error:
        say(console)("conformance: interrupted before the first case was judged")
        return 130
    say(console)(f"conformance: pytest ended with {status!r} before anything was summed up")
    say(console)(keeper.why() or "  without an error that it told")
    return 2 if status == pytest.ExitCode.USAGE_ERROR else 3
