"""Two outcomes beside each other, for `conformance replay --show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console

from conformance.judge import Judgement
from conformance.reporting.columns import print_table, say
from conformance.reporting.wording import rule_of
from conformance.runs import Runs

Cells = tuple[str, str, str, str, str]


def print_side_by_side(console: Console, judgement: Judgement) -> None:
    """The subject's plain decoding beside the oracle; nothing where the runs were another process's."""
    if judgement.runs is not None:
        for line in title(judgement.runs, judgement.failures()):
            say(console)(line)
        heads = ("row", "step", judgement.runs.subject.name, "oracle", "largest gap of logits")
        print_table(console, [heads, *_rows(judgement.runs)])


def title(runs: Runs, failed: Iterable[str]) -> Iterator[str]:
    """Which two runs are shown, and what the checks that failed are about, which may be other runs."""
    shown = f"plain decoding by {runs.subject.name}, and the oracle under the same tokens"
    yield f"\nShown: {shown}."
    names = list(failed)
    for name in names:
        yield f"{name} failed, whose rule is: {rule_of(name)}"
    if names:
        yield "Where a rule is about other runs than those shown, these may agree."


def _rows(runs: Runs) -> Iterator[Cells]:
    """Per row and step: the subject's token, the oracle's under the same tokens, the largest gap of their logits."""
    if runs.batch.crash:
        yield "all", "", str(runs.batch.crash), "", ""
        return
    for row in runs.rows:
        yield from _steps(runs, row)


def _steps(runs: Runs, row: int) -> Iterator[Cells]:
    index = runs.sequences(row)[0]
    tokens = runs.kept(row, runs.batch.tokens(index))
    for step, (token, expected) in enumerate(zip(tokens, runs.oracle.logits(row, tokens), strict=True)):
        gap = float((runs.batch.logits[step][index].double() - expected.double()).abs().max())
        yield str(row), str(step), str(token), str(int(expected.argmax())), f"{gap:.1e}"
