"""What scores must be, given the logits and the ids of one row alone: each rule in the order that `generate` has.

Written from what the settings are documented to mean, on a row's own ids: padding is none of them, nor are the other
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from conformance.plans.steering import Steering
from conformance.steering import warpers
from conformance.steering.telling import allowed, words

NEVER = float("-inf")


@dataclass(frozen=True)
class Row:
    """What the rules are given of one row at one step.

    ids: the row's own, its decoder's where there are two sides; seen: what the prompt's own rules are about; prompt:
    the ids that words are told by; number: the row's; new: how many tokens it has said; sampled: whether warpers count.
    """

    ids: tuple[int, ...]
    seen: tuple[int, ...]
    prompt: tuple[int, ...]
    number: int
    new: int
    sampled: bool


@dataclass(frozen=True)
class Scores:
    """values: of shape (vocabulary,), float64; open: tokens that may be left out or not, so near are they."""

    values: torch.Tensor
    open: torch.Tensor


def scores(how: Steering, logits: torch.Tensor, row: Row) -> Scores:
    """What the logits of one step, shape (vocabulary,), become."""
    values = _steered(how, logits.double(), row)
    found = Scores(values, torch.zeros_like(values, dtype=torch.bool))
    if row.sampled:
        found = _warped(how, found)
    if not how.renormalize:
        return found
    return Scores(found.values.log_softmax(-1), found.open | found.open.any())


def _steered(how: Steering, values: torch.Tensor, row: Row) -> torch.Tensor:
    vocabulary = values.shape[-1]
    for word in words(how.bias, row.prompt):
        values = _added(values, word[-1:], how.weight) if _ends_with(row.ids, word[:-1]) else values
    values = _penalised(values, row.seen, 1 / how.encoder_repetition)
    values = _penalised(values, row.ids, how.repetition)
    banned = _repeated(row.ids, row.ids, how.ngrams) + _repeated(row.ids, row.seen, how.encoder_ngrams)
    banned += [word[-1] for word in words(how.bad_words, row.prompt) if _ends_with(row.ids, word[:-1])]
    banned += how.eos if row.new < how.min_new else ()
    values = _without(values, banned)
    if how.allowed:
        values = _only(values, allowed(how, row.number, vocabulary))
    if how.decay and row.new > how.decay_after:
        values = _likelier(values, how.eos, how.decay ** (row.new - how.decay_after) - 1)
    return _without(values, [*how.suppress, *(how.suppress_first if row.new == 0 else ())])


def _added(values: torch.Tensor, tokens: Sequence[int], weight: float) -> torch.Tensor:
    return values.index_add(0, torch.tensor(list(tokens)), torch.full((len(tokens),), weight, dtype=values.dtype))


def _ends_with(ids: Sequence[int], last: Sequence[int]) -> bool:
    return len(last) <= len(ids) and tuple(ids[len(ids) - len(last) :]) == tuple(last)


def _penalised(values: torch.Tensor, tokens: Sequence[int], penalty: float) -> torch.Tensor:
    where = _marked(values, tokens)
    return torch.where(where, torch.where(values < 0, values * penalty, values / penalty), values)


def _marked(values: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    marked = torch.zeros_like(values, dtype=torch.bool)
    marked[sorted({token for token in tokens if token < len(values)})] = True
    return marked


def _without(values: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    return values.masked_fill(_marked(values, tokens), NEVER)


def _only(values: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    """Where no allowed token is left, what is allowed holds nevertheless."""
    left = values.masked_fill(~_marked(values, tokens), NEVER)
    return left if left.isfinite().any() else torch.full_like(values, NEVER).masked_fill(_marked(values, tokens), 0.0)


def _repeated(ids: Sequence[int], among: Sequence[int], size: int) -> list[int]:
    """The tokens that would end a sequence of this size which is among other ids already."""
    if not size or len(ids) < size - 1:
        return []
    last = tuple(ids[len(ids) - size + 1 :]) if size > 1 else ()
    return [among[at + size - 1] for at in range(len(among) - size + 1) if tuple(among[at : at + size - 1]) == last]


def _likelier(values: torch.Tensor, tokens: Sequence[int], share: float) -> torch.Tensor:
    more = _marked(values, tokens) & values.isfinite()
    return torch.where(more, values + values.abs() * share, values)


def _warped(how: Steering, given: Scores) -> Scores:
    """What is left for sampling. Where it is open what one rule leaves, so is all that a further one makes of it."""
    values, open_ = given.values / how.temperature, given.open
    for rule, limit in warpers.rules(how):
        out, near = rule(values, limit)
        open_ = torch.ones_like(near) if open_.any() else near & values.isfinite()
        values = values.masked_fill(out, NEVER)
    return Scores(values, open_)
