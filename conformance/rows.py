"""Compare one row of an outcome with expected logits: logits, processed scores, then tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from conformance.compare import compare_steps, compare_tokens, crash_difference
from conformance.oracle import OracleRaised
from conformance.outcome import Crash, Outcome
from conformance.reference.decode import OtherTokensFed
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

OTHER_TOKENS = "the type's own preparation feeds other tokens than it is asked to"


def compare_lengths(runs: Runs, outcome: Outcome, rows: Sequence[int] | None = None) -> Comparison:
    """Decoding goes on until the last row has ended, and after its end a row holds padding only.

    `rows` are the prompt rows that ran together (all: None).
    """
    if not outcome.steps:
        return Comparison.of(Difference("length", "sequences", "at least one new token", "none"))
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
    tokens = runs.kept(row, outcome.tokens(index))
    where = f"row {row} " if len(runs.rows) > 1 else ""
    for field in ("logits", "scores"):
        recorded = len(getattr(outcome, field))
        if recorded != outcome.steps:
            kind = "missing" if recorded < outcome.steps else "length"
            return Comparison.of(Difference(kind, field, f"{outcome.steps} steps", f"{recorded} steps"))

    def processed(logits: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        return processed_by(runs.processors(rows), outcome, outcome.prompt_length, index, logits)

    return compare_decoded(runs, outcome, index, row, tokens, expected, processed, where)


def compare_decoded(
    runs: Runs,
    outcome: Outcome,
    index: int,
    row: int,
    tokens: Sequence[int],
    expected: Sequence[torch.Tensor],
    processed: Callable[[Iterable[torch.Tensor]], list[torch.Tensor]],
    where: str,
    depth: float = math.inf,
) -> Comparison:
    """The logits, scores and, unless they are sampled, `tokens` of sequence `index`, which is of prompt row `row`.

    `processed` makes expected scores of expected logits. `depth`: scores so far below the best are not told apart.
    """
    noise, scores = runs.noise(row, tokens), processed(expected)
    got = {field: [step[index] for step in getattr(outcome, field)[: len(tokens)]] for field in ("logits", "scores")}
    result = compare_steps("logits", got["logits"], list(expected), noise, where, runs.bound)
    result += compare_steps("scores", cut(got["scores"], depth), cut(scores, depth), noise, where, runs.bound)
    if runs.case.settings.do_sample:
        return result

    def margin(step: int, best: int, token: int) -> float:
        try:
            wide = processed(runs.wide_oracle.logits(row, tokens))[step]
        except OracleRaised:  # in float64 only: a difference that was found is not to be lost for that
            wide = scores[step]
        return abs(float(wide[best] - wide[token]))

    return result + compare_tokens(tokens, scores, margin, noise, where, runs.bound)


def cut(steps: Sequence[torch.Tensor], depth: float) -> list[torch.Tensor]:
    """Each vector with nothing further below its largest value than that, but for what is forbidden."""
    if depth == math.inf:
        return list(steps)
    return [torch.where(step.isfinite(), step.clamp(min=float(step.max()) - depth), step) for step in steps]


def processed_by(
    processors: Any, outcome: Outcome, start: int, index: int, expected: Iterable[torch.Tensor]
) -> list[torch.Tensor]:
    """The expected scores of sequence `index`: processors, built fresh, applied to one step after the other.

    `start`: how many ids of the outcome come before the new ones.
    """
    if not processors:
        return list(expected)
    assert outcome.sequences is not None
    ids = outcome.sequences
    with torch.no_grad():  # one that guides runs the model
        return [
            processors(ids[:, : start + step], logits.repeat(len(ids), 1))[index]  # some insist on the batch
            for step, logits in enumerate(expected)
        ]


def forced_crash(crash: Crash, beside: str) -> Comparison:
    """A crash under forced tokens; a type whose preparation cannot feed them is not applicable."""
    if crash.type == OtherTokensFed.__name__:
        return Comparison(not_applicable=OTHER_TOKENS)
    return crash_difference(crash, beside)


def group_sizes(runs: Runs) -> list[int]:
    """How many tokens of the plan's continuation go in each forward; none for a family without such a plan."""
    return list(runs.case.plan.sizes()) if hasattr(runs.case.plan, "sizes") else []


def feeds_other_tokens(runs: Runs) -> bool:
    """Whether the type's own preparation has no way to feed the plan's tokens several at a time.

    What rests on that then shows the type's own doing, whoever decodes.
    """
    tokens, sizes = list(runs.case.plan.continuation), group_sizes(runs)
    if not any(size > 1 for size in sizes):
        return False
    grouped = runs.forced([0], torch.tensor([tokens]), sizes)
    return isinstance(grouped, Crash) and grouped.type == OtherTokensFed.__name__
