"""What a run shows while it runs."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from conformance.reporting.columns import counted, say
from conformance.verdicts import STATUSES

PLAIN_LINE_SECONDS = 15.0


class Progress:
    """A pytest plugin for the controller: one line with cases per second and verdict counts."""

    def __init__(self, console: Console, processes: int = 1) -> None:
        self.console, self.start = console, time.time()
        self.cases, self.verdicts, self.findings = 0, Counter[str](), set[str]()
        self.last_line, self.confirming = self.start, ""
        who = counted(max(1, processes), "process", "processes")
        self.loading = f"loading torch, transformers and the checks in {who}: up to a minute"
        self.live = Live(console=console, get_renderable=self._text, transient=True) if console.is_terminal else None

    def pytest_sessionstart(self) -> None:
        """Say who loads what; begin the live line, which is drawn four times a second."""
        say(self.console)(self.loading)
        if self.live:
            self.live.start()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add up what an item reports."""
        for name, facts in report.user_properties if report.when == "call" else ():
            if name == "conformance":
                self.cases += facts["cases"]
                self.verdicts.update(facts["verdicts"])
                self.findings.update(facts["findings"])
        self._show()

    def pytest_conformance_confirming(self, number: int, total: int) -> None:
        """The scripts of findings are executed, one after another."""
        self.confirming = f"confirming {number} of {total}"
        self._show(at_once=number == 1)

    def pytest_sessionfinish(self) -> None:
        """End the live line."""
        if self.live:
            self.live.stop()

    def _show(self, at_once: bool = False) -> None:
        if not self.live and (at_once or time.time() - self.last_line > PLAIN_LINE_SECONDS):
            self.last_line = time.time()
            say(self.console)(self.line())

    def _text(self) -> Text:
        return Text(self.line())

    def line(self) -> str:
        """The progress so far, in one line."""
        seconds = time.time() - self.start
        cases, found = counted(self.cases, "case"), counted(len(self.findings), "finding")
        if self.confirming:
            return f"{seconds:.0f} s  {cases}  {found}  {self.confirming}"
        counts = ", ".join(f"{self.verdicts[s]} {s}" for s in STATUSES if self.verdicts[s])
        if not counts:
            return f"{seconds:.0f} s  no item has ended yet"
        return f"{seconds:.0f} s  {cases} ({self.cases / seconds:.1f}/s)  {counts}  {found}"
