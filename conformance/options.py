"""The options of a run, parsed once and passed to workers as text."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from conformance.listing import families_of_checks

ROUND_EXAMPLES, FEWEST_IN_A_ROUND, ROUNDS_IN_A_BUDGET = 20, 2, 2
MOST_ITEMS = 6000
QUICKEST_CASE = 0.01  # seconds: rounds are planned so that even such cases would not run out before the deadline
PR_SEED = 20240229
DATABASE = Path(".conformance") / "database"
PROFILES = ("pr", "nightly")


@dataclass(frozen=True)
class Options:
    """What a run is asked to do.

    checks, architectures: the selected names; examples: counted examples an item (None: `ROUND_EXAMPLES`, in as
    many rounds as the budget allows); budget: seconds; deadline: epoch seconds, once a process has loaded what it
    needs; fresh: no corpus, no database, no known issues; workers: processes that share the items; share: seconds,
    see `spread`.
    """

    checks: tuple[str, ...]
    architectures: tuple[str, ...]
    subject: str = "installed"
    examples: int | None = None
    budget: float | None = None
    seed: int = PR_SEED
    profile: str = "pr"
    fresh: bool = False
    max_findings: int | None = None
    report: str | None = None
    deadline: float | None = None
    workers: int = 1
    share: float | None = None

    def spread(self, items: int) -> Options:
        """With the share of a budget that an item has for drawing in a round.

        Slow items do not keep others from theirs, and there is time for a second round, which leans towards what the
        first has not reached.
        """
        if self.budget is None or items == 0:
            return self
        return self.replace(share=self.budget * self.workers / items / ROUNDS_IN_A_BUDGET)

    def share_of_the_rest(self, left: int) -> float:
        """Seconds that an item has for drawing, when so many of its round have not begun: where others have taken long
        to make their failures small, less than was meant at first, so that every type has its turn.
        """
        share = float("inf") if self.share is None else self.share
        if self.deadline is None or not left:
            return share
        return min(share, max(0.0, self.deadline - time.time()) * self.workers / left / ROUNDS_IN_A_BUDGET)

    def begun(self) -> Options:
        """With the end of the budget, counted from now."""
        return self if self.budget is None else self.replace(deadline=time.time() + self.budget)

    def families(self) -> tuple[str, ...]:
        """The families of the selected checks, sorted."""
        known = families_of_checks()
        return tuple(sorted({known[check] for check in self.checks}))

    def rounds(self, items: int) -> int:
        """How many rounds of so many items to plan: one for `examples`, else enough for the budget."""
        if self.budget is None:
            return 1
        items = max(1, items)
        enough = self.budget * self.workers / (items * ROUND_EXAMPLES * QUICKEST_CASE)
        return int(max(1, min(enough + 1, MOST_ITEMS / items)))

    def item_seed(self, item: str) -> int:
        """The seed of one item. The run's seed alone would give every item the same draws."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}|{item}".encode()).digest()[:8], "big")

    def to_json(self) -> str:
        """As text, for a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """The options that `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        return cls(
            **{**document, "checks": tuple(document["checks"]), "architectures": tuple(document["architectures"])}
        )

    def replace(self, **changes: Any) -> Options:
        """A copy with other values."""
        return replace(self, **changes)
