"""Which items a run has: check family × architecture × round, in a stable order."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.options import Options


@dataclass(frozen=True)
class Item:
    """One pytest item: a check family on one architecture, in one round."""

    family: str
    architecture: str
    round: int

    @property
    def id(self) -> str:
        """Stable and sortable: rounds are the major order, so every item gets one before any gets a second."""
        return f"r{self.round:04d}-{self.family}-{self.architecture}"


def plan(options: Options) -> list[Item]:
    """Every item of a run, rounds first; needs neither torch nor transformers."""
    families = options.families()
    rounds = options.rounds(len(families))
    return [
        Item(family, architecture, number)
        for number in range(1, rounds + 1)
        for architecture in options.architectures
        for family in families
    ]
