"""The cells of the sensitivity table."""

from __future__ import annotations

from dataclasses import dataclass, field

FAULTS = ("entry lost", "position shifted", "rows swapped", "state zeroed")


@dataclass
class Cell:
    """One cache kind of one architecture under one fault: how many cases showed it, by scale of the weights."""

    architecture: str
    kind: str
    fault: str
    cases: int = 0
    seen: int = 0
    by_scale: dict[str, list[int]] = field(default_factory=dict)  # scale → [seen, cases]
    reason: str = ""  # why it cannot be planted, or cannot be seen

    @property
    def share(self) -> float | None:
        """The share of cases that showed the fault."""
        return self.seen / self.cases if self.cases else None

    def add(self, scale: float, seen: bool) -> None:
        """One case more."""
        self.cases += 1
        self.seen += seen
        counts = self.by_scale.setdefault(f"{scale:g}", [0, 0])
        counts[0], counts[1] = counts[0] + seen, counts[1] + 1
