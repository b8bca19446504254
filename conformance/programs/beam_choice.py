"""Which beams a search has to return, told from the scores that came with them: no model is run again.

A search keeps the best `beams` that go on, and of those that end the best `beams` by score over length ** penalty. It
draws or takes `beams` candidates for each end token and once more, so that enough go on. A row is closed when none of
what goes on can still become better than the worst that ended; with `early_stopping` as soon as enough have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from conformance.plans.beam_search import BeamSearch

NOT_YET = -1e9  # the score of beams that there are not yet: at first all are the same prompt


@dataclass(frozen=True)
class Beam:
    """A sequence: its score, its new tokens, and of each of them the row of the batch that it continued."""

    score: float
    tokens: tuple[int, ...] = ()
    path: tuple[int, ...] = ()


@dataclass
class Row:
    """The search of one row of the prompt; `tied`: equal scores stood where only one of them was kept."""

    number: int
    beams: int
    how: BeamSearch
    limit: int
    going: list[Beam] = field(default_factory=list)
    ended: list[Beam] = field(default_factory=list)
    open: bool = True
    tied: bool = False

    def __post_init__(self) -> None:
        self.going = [Beam(0.0), *(Beam(NOT_YET) for _ in range(self.beams - 1))]

    @property
    def full(self) -> bool:
        """Whether as many have ended as are kept."""
        return len(self.ended) == self.beams

    def advance(self, candidates: Sequence[Beam]) -> None:
        """Go on with the candidates of one step, the best first."""
        length = len(candidates[0].tokens)
        self.tied |= len({beam.score for beam in candidates}) < len(candidates)
        ends = [length == self.limit or beam.tokens[-1] in self.how.eos for beam in candidates]
        if self.open and not (self.full and self.how.early_stopping is True):
            new = [
                Beam(self._final(beam.score, length), beam.tokens, beam.path)
                for beam, end in list(zip(candidates, ends, strict=True))[: self.beams]
                if end
            ]
            self.ended = sorted([*self.ended, *new], key=lambda beam: -beam.score)[: self.beams]
        self.going = [beam for beam, end in zip(candidates, ends, strict=True) if not end][: self.beams]
        if self.going and self.full:
            length = self.limit if self.how.early_stopping == "never" and self.how.length_penalty > 0 else length
            self.open &= self._final(self.going[0].score, length) > self.ended[-1].score

    def _final(self, score: float, length: int) -> float:
        return float(torch.tensor(score) / (length**self.how.length_penalty))


def chosen(scores: Sequence[torch.Tensor], rows: int, beams: int, how: BeamSearch, limit: int) -> tuple[list[Row], int]:
    """The search of every row and how many steps it takes, from the processed log-probabilities of each step.

    scores: shape (rows * beams, vocabulary). Fewer steps than are needed are for the caller to see. Sampled beams are
    drawn from torch's own generator, whatever it is at.
    """
    found = [Row(number, beams, how, limit) for number in range(rows)]
    count = max(2, 1 + len(how.eos)) * beams
    for step, told in enumerate(scores):
        before = torch.tensor([[beam.score for beam in row.going] for row in found])
        summed = (told.float().view(rows, beams, -1) + before[:, :, None]).flatten(1)
        for row, own, picked in zip(found, summed, _picked(summed, count, how), strict=True):
            row.advance(_candidates(row, own, picked.tolist(), told.shape[-1]))
        closed = not any(row.open for row in found)
        enough = how.early_stopping is True and all(row.full for row in found)
        if closed or enough or step + 1 == limit:
            return found, step + 1
    return found, len(scores) + 1


def _picked(summed: torch.Tensor, count: int, how: BeamSearch) -> torch.Tensor:
    if not how.sampled:
        return summed.topk(count)[1]
    return torch.multinomial(summed.softmax(-1), count)


def _candidates(row: Row, summed: torch.Tensor, picked: list[int], vocabulary: int) -> list[Beam]:
    made = []
    for index in picked:
        beam, token = row.going[index // vocabulary], index % vocabulary
        place = row.number * row.beams + index // vocabulary
        made.append(Beam(float(summed[index]), (*beam.tokens, token), (*beam.path, place)))
    return sorted(made, key=lambda beam: -beam.score)
