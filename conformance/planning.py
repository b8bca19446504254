"""Which items a run has: check family × architecture × round, in a stable order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from conformance.architectures import catalogue
from conformance.architectures.media import media_names
from conformance.listing import architectures_of_families, media_families
from conformance.options import Options


@dataclass(frozen=True)
class Item:
    """One pytest item: a check family on one architecture, in one round.

    left: how many items of the round have not begun when it does, itself included; 0 where that is not known.
    """

    family: str
    architecture: str
    round: int
    left: int = 0

    @property
    def id(self) -> str:
        """Stable and sortable: rounds are the major order, so every item gets one before any gets a second."""
        return f"r{self.round:04d}-{self.family}-{self.architecture}"


def plan(options: Options) -> list[Item]:
    """Every item of a run, rounds first; needs neither torch nor transformers.

    Within a round the order is by a digest: the alphabet would give a short budget only its beginning.
    """
    pairs = sorted(pairs_of(options), key=_digest)
    rounds = range(1, options.rounds(len(pairs)) + 1)
    return [
        Item(family, architecture, number, left)
        for number in rounds
        for left, (family, architecture) in zip(range(len(pairs), 0, -1), pairs, strict=True)
    ]


def pairs_of(options: Options) -> list[tuple[str, str]]:
    """Every selected family with every selected type that it runs on."""
    return [(family, name) for family in options.families() for name in _selected(family, options)]


def _selected(family: str, options: Options) -> tuple[str, ...]:
    """The selected types that a family runs on; by default with those that take images or sound, where it uses them."""
    chosen, only = options.architectures, architectures_of_families()[family]
    if family in media_families() and chosen == catalogue.core_names():
        chosen = (*chosen, *(name for name in media_names() if name in catalogue.names()))
    return chosen if only is None else tuple(name for name in chosen if name in only)


def _digest(pair: tuple[str, str]) -> bytes:
    return hashlib.sha256("-".join(pair).encode()).digest()
