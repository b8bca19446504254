"""Compare one row of an outcome with expected logits: tokens, logits, then processed scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from conformance.compare import compare_steps, compare_tokens
from conformance.outcome import Outcome
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


def compare_lengths(runs: Runs, outcome: Outcome, rows: Sequence[int] | None = None) -> Comparison:
    """Decoding goes on until the last row has ended, and after its end a row holds padding only.

    `rows` are the prompt rows that ran together (all: None).
    """
    if not outcome.steps:
        return Comparison()
    tokens = {index: (row, outcome.tokens(index)) for index, row in enumerate(_row_of_each(runs, rows))}
    ends = {index: runs.scenario.ending(row, its) for index, (row, its) in tokens.items()}
    for index, ending in ends.items():
        if ending is None:
            row, its = tokens[index]
            return Comparison.of(Difference("length", "sequences", _until(runs), f"{len(its)} tokens", f"row {row}"))
    last = max(ending.step + 1 for ending in ends.values() if ending is not None)
    if outcome.steps != last:
        return Comparison.of(Difference("length", "sequences", f"{last} new tokens", f"{outcome.steps}"))
    filler = runs.case.settings.filler
    for row, its in tokens.values():
        if any(token != filler for token in its[len(runs.kept(row, its)) :]):
            return Comparison.of(Difference("tokens", "padding", f"only {filler}", str(its), f"row {row}"))
    return Comparison()


def _until(runs: Runs) -> str:
    return f"{runs.case.settings.max_new_tokens} tokens, an end token or a criterion's end"


def _row_of_each(runs: Runs, rows: Sequence[int] | None) -> list[int]:
    return [row for row in (runs.rows if rows is None else rows) for _ in range(runs.case.settings.copies)]


def compare_row(
    runs: Runs,
    outcome: Outcome,
    index: int,
    row: int,
    rows: Sequence[int] | None,
    expected: Sequence[torch.Tensor],
) -> Comparison:
    """Sequence `index` of `outcome`, which is of row `row` of the prompt, against expected logits under its own tokens.

    `rows` are the prompt rows that ran together (all: None): the processors are built for them. `expected`
    has one (vocabulary,) tensor for every step up to the row's end.
    """
    settings = runs.case.settings
    tokens = runs.kept(row, outcome.tokens(index))
    where = f"row {row} " if len(runs.rows) > 1 else ""
    for field in ("logits", "scores"):
        if len(getattr(outcome, field)) < len(tokens):
            seen = f"{len(getattr(outcome, field))} steps"
            return Comparison.of(Difference("missing", field, f"{len(tokens)} steps", seen, where))
    result, noise = Comparison(), runs.noise(row, tokens)
    logits = [step[index] for step in outcome.logits[: len(tokens)]]
    result += compare_steps("logits", logits, list(expected), noise, where, runs.bound)
    scores = processed(runs, outcome, index, rows, expected)
    got = [step[index] for step in outcome.scores[: len(tokens)]]
    result += compare_steps("scores", got, scores, noise, where, runs.bound)
    if not settings.do_sample:

        def margin(step: int, best: int, token: int) -> float:
            wide = processed(runs, outcome, index, rows, runs.wide_oracle.logits(row, tokens))[step]
            return abs(float(wide[best] - wide[token]))

        result += compare_tokens(tokens, scores, margin, noise, where, runs.bound)
    return result


def processed(
    runs: Runs, outcome: Outcome, index: int, rows: Sequence[int] | None, expected: Iterable[torch.Tensor]
) -> list[torch.Tensor]:
    """The expected scores: the installed processors, built fresh, applied to the expected logits."""
    processors = runs.processors(rows)
    if not processors:
        return list(expected)
    assert outcome.sequences is not None
    scores = []
    for step, logits in enumerate(expected):
        ids = outcome.sequences[:, : outcome.prompt_length + step]
        scores.append(processors(ids, logits.repeat(len(ids), 1))[index])  # some processors insist on the batch
    return scores
