"""Compare one row of an outcome with expected logits: tokens, logits, then processed scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from conformance.compare import compare_steps, compare_tokens
from conformance.outcome import Outcome
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


def until_end(tokens: Sequence[int], eos: Sequence[int]) -> list[int]:
    """The tokens up to and with the first end token."""
    end = next((step for step, token in enumerate(tokens) if token in eos), None)
    return list(tokens if end is None else tokens[: end + 1])


def compare_row(
    runs: Runs,
    outcome: Outcome,
    index: int,
    row: int,
    rows: Sequence[int] | None,
    expected: Sequence[torch.Tensor],
) -> Comparison:
    """Row `index` of `outcome`, which is row `row` of the prompt, against expected logits under its own tokens.

    `rows` are the prompt rows that ran together (all: None): the processors are built for them. `expected`
    has one (vocabulary,) tensor for every step up to the row's end.
    """
    settings = runs.case.settings
    tokens = until_end(outcome.tokens(index), settings.eos)
    where = f"row {row} " if len(runs.rows) > 1 else ""
    for field in ("logits", "scores"):
        if len(getattr(outcome, field)) < len(tokens):
            seen = f"{len(getattr(outcome, field))} steps"
            return Comparison.of(Difference("missing", field, f"{len(tokens)} steps", seen, where))
    result = _length(tokens, runs, where) if outcome.steps else Comparison()
    noise = runs.noise(row, tokens)
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


def _length(tokens: Sequence[int], runs: Runs, where: str) -> Comparison:
    """A row ends at its first end token or at the limit, and nowhere else."""
    settings = runs.case.settings
    if len(tokens) == settings.max_new_tokens or (tokens and tokens[-1] in settings.eos):
        return Comparison()
    wanted = f"{settings.max_new_tokens} tokens or an end token"
    return Comparison.of(Difference("length", "sequences", wanted, f"{len(tokens)} tokens", where))


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
