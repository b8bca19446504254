"""Which tokens sampling leaves out: each rule from what its setting is documented to keep, on one row's scores.

A rule gives two masks of shape (vocabulary,): what is left out, and what is so near to its threshold that either is
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from conformance.plans.steering import PLAIN, Steering

# How near to a threshold a probability or an entropy may be on either side of it: float32 rounds a sum of all tokens.
NEAR = 2e-5
LIKELIEST = 100  # tokens that `top_h` looks at
Masks = tuple[torch.Tensor, torch.Tensor]
Rule = Callable[[torch.Tensor, float], Masks]


def rules(how: Steering) -> Iterator[tuple[Rule, float]]:
    """What a steering leaves out, with the setting's value, in the order that `generate` has."""
    for name, rule in RULES.items():
        if (limit := getattr(how, name)) != getattr(PLAIN, name):
            yield rule, float(limit)


def bounded_entropy(values: torch.Tensor, share: float) -> Masks:
    """`top_h`: the likeliest tokens are kept while their part of the entropy is at most this share of it."""
    found, order = values.topk(min(LIKELIEST, len(values)))
    parts = torch.special.entr(found.softmax(-1))
    out, near = _beyond(parts.cumsum(0), share * float(parts.sum()))
    out[0] = near[0] = False
    return _back(values, order, out, fill=True), _back(values, order, near, fill=False)


def fewest(values: torch.Tensor, count: float) -> Masks:
    """`top_k`: so many of the likeliest tokens are kept, and what is as likely as the last of them."""
    least = values.topk(min(int(count), len(values))).values[-1]
    return values < least, torch.zeros_like(values, dtype=torch.bool)


def mass(values: torch.Tensor, limit: float) -> Masks:
    """`top_p`: a token is kept where the likelier ones have less than this probability together."""
    chances = values.softmax(-1)
    likelier, equal = (of(chances, chances[:, None]) for of in (torch.gt, torch.eq))
    above, most = (where.double() @ chances for where in (likelier, likelier | equal))
    # Of tokens that are as likely as each other, any may be the one that is over the limit.
    return above >= limit, (above < limit + NEAR) & (most - chances > limit - NEAR)


def share(values: torch.Tensor, least: float) -> Masks:
    """`min_p`: a token is kept with at least this share of the largest probability."""
    chances = values.softmax(-1)
    found = chances / chances.max()
    return found < least, (found - least).abs() < NEAR


def typical(values: torch.Tensor, limit: float) -> Masks:
    """`typical_p`: those tokens are kept whose surprise is nearest to the entropy, until they have this probability."""
    chances = values.softmax(-1)
    off = (-values.log_softmax(-1) - torch.special.entr(chances).sum()).abs()
    last = int((chances[off.argsort()].cumsum(0) < limit).sum())
    edge = off.sort().values[min(last, len(off) - 1)]
    before, with_it = (float(chances[kept].sum()) for kept in (off < edge, off <= edge))
    beside = (off - edge).abs() < NEAR
    doubtful = min(abs(before - limit), abs(with_it - limit)) < NEAR
    return off > edge, torch.ones_like(beside) if doubtful else beside & (beside.sum() > 1)


def least(values: torch.Tensor, limit: float) -> Masks:
    """`epsilon_cutoff`: a token is kept with at least this probability, and the likeliest in any case."""
    chances = values.softmax(-1)
    likeliest = values == values.max()
    return (chances < limit) & ~likeliest, ((chances - limit).abs() < NEAR) & ~likeliest


def least_by_entropy(values: torch.Tensor, limit: float) -> Masks:
    """`eta_cutoff`: the same with a probability that is smaller where the entropy is large."""
    entropy = torch.special.entr(values.softmax(-1)).sum()
    return least(values, min(limit, limit**0.5 * float(torch.exp(-entropy))))


def _beyond(found: torch.Tensor, limit: float) -> Masks:
    return found > limit, (found - limit).abs() < NEAR


def _back(values: torch.Tensor, order: torch.Tensor, of_ordered: torch.Tensor, fill: bool) -> torch.Tensor:
    """In the order of the vocabulary; `fill` is what holds of tokens that were not looked at."""
    return torch.full_like(values, fill, dtype=torch.bool).scatter(0, order, of_ordered)


RULES: dict[str, Rule] = {
    "top_h": bounded_entropy,
    "top_k": fewest,
    "top_p": mass,
    "min_p": share,
    "typical_p": typical,
    "epsilon_cutoff": least,
    "eta_cutoff": least_by_entropy,
}
