"""Bets at fair odds: likelihood ratios against what a wrong acceptance of drafts would draw from.

A bet on each token of each run, at the odds of the right distribution, multiplies what is put on it by `r / p`, where
`r` is another distribution that was chosen before the token came. On average that gains nothing, so that the product
over all of them exceeds `exp(x)` with a probability of at most `exp(-x)`: there too nothing is approximated. It sees
what many tokens show together, at all steps, where no single frequency is far off.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from conformance.drafting.frequencies import CERTAIN, Judged, Runs
from conformance.verdicts import Difference


def alternatives(chances: torch.Tensor, drafted: torch.Tensor) -> dict[str, torch.Tensor]:
    """How wrong a loop may be → what it would draw from; all of shape (steps, vocabulary).

    drafted: what the drafts are drawn from.
    """
    common = torch.minimum(chances, drafted)
    missed = 1 - common.sum(dim=-1, keepdim=True)
    left_over = torch.where(missed > 1e-9, (chances - common) / missed.clamp(min=1e-9), chances)
    return {
        "drafts are accepted too often": (chances + drafted) / 2,
        "drafts are accepted too seldom": (chances + left_over) / 2,
        "rejected tokens are drawn again from all": common + missed * chances,
    }


def bet_won(
    drawn: Runs, chances: Sequence[torch.Tensor], drafted: Sequence[torch.Tensor], judged: Judged
) -> Difference | None:
    """The bet that won most, on some steps in a row of all runs, if by chance it would not."""
    gains: dict[str, list[float]] = {}
    for tokens, right, drafts, its in zip(drawn, chances, drafted, judged, strict=True):
        for name, other in alternatives(right, drafts).items():
            won = gains.setdefault(name, [0.0] * max(map(len, drawn)))
            for step, token in enumerate(tokens):
                won[step] += float((other[step, token] / right[step, token]).log()) if its[step] else 0.0
    most, name = max((largest_sum(won), name) for name, won in gains.items())
    if most <= CERTAIN:
        return None
    return Difference("values", "distribution", "that of plain sampling", f"exp({most:.0f}) times likelier if {name}")


def largest_sum(numbers: Sequence[float]) -> float:
    """The largest sum of some numbers in a row."""
    return max(accumulate(numbers, lambda before, number: max(before, 0.0) + number))
