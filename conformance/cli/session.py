"""One pytest session over the suite, as `conformance run` starts it."""

from __future__ import annotations

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
    status = pytest.main(arguments, plugins=[Progress(console, workers), keeper])
    if keeper.summary is None:
        say(console)(f"conformance: pytest ended with {status!r} before anything was summed up")
        say(console)(keeper.why() or "  without an error that it told")
        return 2 if status == pytest.ExitCode.USAGE_ERROR else 3
    print_summary(console, keeper.summary, options.report or ".")
    code = keeper.summary["exit_code"]
    assert isinstance(code, int)
    return code
