"""Two outcomes beside each other, for `conformance replay --show`."""

from __future__ import annotations

from rich.table import Table

from conformance.outcome import Outcome
from conformance.runs import Runs


def side_by_side(runs: Runs) -> Table:
    """Per row and step: the subject's token, the oracle's under the same tokens, the largest gap of their logits."""
    table = Table("row", "step", f"{runs.subject.name}", "oracle", "largest gap of logits")
    if runs.batch.crash:
        table.add_row("all", "", str(runs.batch.crash), "", "")
        return table
    for row in runs.rows:
        for cells in _steps(runs, runs.batch, row):
            table.add_row(str(row), *cells)
    return table


def _steps(runs: Runs, outcome: Outcome, row: int) -> list[tuple[str, str, str, str]]:
    index = runs.sequences(row)[0]
    tokens = runs.kept(row, outcome.tokens(index))
    lines = []
    for step, (token, expected) in enumerate(zip(tokens, runs.oracle.logits(row, tokens), strict=True)):
        gap = float((outcome.logits[step][index].double() - expected.double()).abs().max())
        lines.append((str(step), str(token), str(int(expected.argmax())), f"{gap:.1e}"))
    return lines
