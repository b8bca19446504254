"""What a run shows while it runs and at its end."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from conformance.verdicts import STATUSES

PLAIN_LINE_SECONDS = 15.0


class Progress:
    """A pytest plugin for the controller: one line with cases per second and verdict counts."""

    def __init__(self, console: Console) -> None:
        self.console, self.start = console, time.time()
        self.cases, self.verdicts, self.findings = 0, Counter[str](), set[str]()
        self.last_line = self.start
        self.live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def pytest_sessionstart(self) -> None:
        """Begin the live line."""
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

    def pytest_sessionfinish(self) -> None:
        """End the live line."""
        if self.live:
            self.live.stop()

    def _show(self) -> None:
        if self.live:
            self.live.update(Text(self.line()))
        elif time.time() - self.last_line > PLAIN_LINE_SECONDS:
            self.last_line = time.time()
            self.console.print(self.line(), markup=False, highlight=False, soft_wrap=True)

    def line(self) -> str:
        """The progress so far, in one line."""
        seconds = time.time() - self.start
        counts = ", ".join(f"{self.verdicts[s]} {s}" for s in STATUSES if self.verdicts[s])
        speed = f"{self.cases} cases ({self.cases / seconds:.1f}/s)"
        return f"{seconds:.0f} s  {speed}  {counts or 'starting'}  {len(self.findings)} findings"


def print_summary(console: Console, summary: dict[str, Any], folder: str) -> None:
    """The end of a run: verdicts per check, findings, what was not reached, and where everything is."""
    console.print(_verdict_table(summary))
    for finding in summary["findings"]:
        state = {True: "confirmed", False: "NOT confirmed", None: "not run"}[finding["confirmed"]]
        console.print(f"{finding['id']}  [{state}]", markup=False, highlight=False, soft_wrap=True)
        console.print(
            f"    expected {finding['expected']}; got {finding['got']}", markup=False, highlight=False, soft_wrap=True
        )
        console.print(
            f"    conformance replay {folder}/findings/{finding['id']}", markup=False, highlight=False, soft_wrap=True
        )
    for name in ("not_reached", "below_floor"):
        if summary[name]:
            console.print(
                f"{name.replace('_', ' ')}: {'; '.join(summary[name])}", markup=False, highlight=False, soft_wrap=True
            )
    for broken in summary["broken"]:
        console.print(
            f"broke on {broken['item']}: {broken['error'][:300]}", markup=False, highlight=False, soft_wrap=True
        )
    console.print(
        f"{summary['cases']} cases in {summary['seconds']:.0f} s ({summary['cases_per_s']:.1f}/s, "
        f"{summary['share_of_time_in_model_code']:.0%} in model code), {summary['share_of_ties']:.2%} ties, "
        f"seed {summary['seed']}, report {folder}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"exit {summary['exit_code']}: {summary['exit_reason']}", markup=False, highlight=False, soft_wrap=True
    )


def _verdict_table(summary: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("check", no_wrap=True)
    shown = [s for s in STATUSES if any(_of(counts, s) for counts in summary["verdicts"].values())]
    for status in shown:
        table.add_column(status, justify="right")
    for check, counts in summary["verdicts"].items():
        table.add_row(check, *(str(_of(counts, status) or "") for status in shown))
    return table


def _of(counts: dict[str, int], status: str) -> int:
    return sum(count for label, count in counts.items() if label.split(" ")[0] == status)
