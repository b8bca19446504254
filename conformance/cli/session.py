"""One pytest session over the suite, as `conformance run` starts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.console import Console

from conformance.options import Options
from conformance.plugin import SUMMARY
from conformance.reporting.terminal import Progress, print_summary


class KeepSummary:
    """A pytest plugin that keeps the summary that the session made."""

    summary: dict[str, object] | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """The session is over: take what it stashed."""
        self.summary = config.stash.get(SUMMARY, None)


def run_session(options: Options, workers: int) -> int:
    """Run the suite with `workers` processes (0: this one) and print the end. Returns the exit code."""
    console, keeper = Console(), KeepSummary()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    arguments = [
        *("--pyargs", "conformance.suite", "--conformance-options", options.to_json()),
        *("-p", "no:terminal", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."),
        f"--junitxml={Path(options.report or '.') / 'junit.xml'}",
    ]
    arguments += ["-n", str(workers), "--maxschedchunk", "1"] if workers else ["-p", "no:xdist"]
    status = pytest.main(arguments, plugins=[Progress(console), keeper])
    if keeper.summary is None:
        console.print(f"conformance: pytest ended with {status!r} before anything was summed up", markup=False)
        return 2 if status == pytest.ExitCode.USAGE_ERROR else 3
    print_summary(console, keeper.summary, options.report or ".")
    code = keeper.summary["exit_code"]
    assert isinstance(code, int)
    return code
