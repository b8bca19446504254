"""Observed frequencies against expected chances, by a bound that holds without an approximation."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conformance.verdicts import Difference

# Natural logarithm of how unlikely something has to be, by chance alone, to be a difference: below 1e-13 each.
CERTAIN = 30.0
Runs = Sequence[Sequence[int]]  # the new tokens of each run
Judged = Sequence[Sequence[bool]]  # which steps of each run are


def evidence(frequencies: torch.Tensor, chances: torch.Tensor, count: int) -> torch.Tensor:
    """The Chernoff-Hoeffding exponent `count * KL(frequency || chance)` of each token, both of shape (vocabulary,).

    For `count` independent draws with these chances on average, a frequency so far off has a probability of at most
    exp(-exponent), whatever the single chances are. Infinite where what has no chance was drawn.
    """
    return count * (_relative(frequencies, chances) + _relative(1 - frequencies, 1 - chances))


def _relative(mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    return torch.special.xlogy(mine, mine) - torch.special.xlogy(mine, theirs.clamp(0, 1))


def frequency_off(drawn: Runs, chances: Sequence[torch.Tensor], judged: Judged) -> Difference | None:
    """The first step at which some token came too often or too seldom; the one that is furthest off there.

    chances: what each run should have drawn from, shape (steps, vocabulary), float64. At a step, runs are independent
    once the tokens before it are given, so that the bound holds for what they have on average.
    """
    for step in range(max(map(len, drawn))):
        reached = [run for run, its in enumerate(judged) if len(its) > step and its[step]]
        if reached and (found := _off(step, [drawn[run][step] for run in reached], [chances[run] for run in reached])):
            return found
    return None


def _off(step: int, tokens: Sequence[int], chances: Sequence[torch.Tensor]) -> Difference | None:
    count, expected = len(tokens), torch.stack([table[step] for table in chances]).mean(dim=0)
    frequencies = torch.bincount(torch.tensor(tokens), minlength=len(expected)).double() / count
    exponents = evidence(frequencies, expected, count)
    token = int(exponents.argmax())
    exponent = float(exponents[token])
    if exponent <= CERTAIN:
        return None
    wanted = f"{float(expected[token]):.3g} of the draws"
    got = f"{float(frequencies[token]):.3g} of {count}, by chance less often than exp(-{exponent:.0f})"
    return Difference("values", "frequencies", wanted, got, f"step {step}, token {token}")
