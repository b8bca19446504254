"""The rounds of a drafted run, told from the preparations that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from conformance.drafting.preparations import Preparation


@dataclass(frozen=True)
class Round:
    """One round of draft and verification: where it started, what was drafted, and the tokens that came of it."""

    length: int
    draft: tuple[int, ...]
    tokens: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """How many tokens of the draft stayed."""
        pairs = zip(self.draft, self.tokens, strict=False)
        return next(
            (i for i, (drafted, token) in enumerate(pairs) if drafted != token),
            min(map(len, (self.draft, self.tokens))),
        )


def rounds(seen: Sequence[Preparation], prompt_length: int, sequence: Sequence[int]) -> list[Round]:
    """The rounds that the main model's preparations tell of; lengths are of the ids that `generate` returns.

    A forward that comes back to an earlier length feeds again what was accepted, and is no round.
    """
    drafts: dict[int, tuple[int, ...]] = {}
    for call in (call for call in seen if call.who == "main"):
        length = prompt_length if call.first else len(call.ids) - call.fed + 1
        if call.first or length > max(drafts, default=-1):
            drafts[length] = call.ids[length:]
    starts = [*sorted(drafts), len(sequence)]
    pairs = pairwise(starts)
    return [Round(start, drafts[start], tuple(sequence[start:end])) for start, end in pairs]
