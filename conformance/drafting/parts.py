"""Which parts of a plan a case allows, and what follows from them for its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from conformance.plans.prefill import PrefillPlan
from conformance.runs import Runs

PARTS = ("embeds", "turns", "chunk", "draft")  # in the order of the ladder


class Parts:
    """The parts of one case's plan."""

    def __init__(self, runs: Runs, plan: PrefillPlan | None = None) -> None:
        """`plan`: one that stands in the place of the case's own, of another family."""
        self.runs, self.scenario, self.plan = runs, runs.scenario, plan or runs.case.plan
        assert isinstance(self.plan, PrefillPlan)

    def has(self, part: str) -> bool:
        """Whether the plan has this part and the case allows it."""
        if part == "turns":
            return bool(self.turns)
        return {
            "embeds": self.plan.embeds and not self.scenario.media,
            "chunk": self.plan.chunk > 0,
            "draft": self.plan.drafts,
        }[part]

    def up_to(self, part: str) -> tuple[str, ...]:
        """The parts of the plan up to one, in the ladder's order."""
        return tuple(p for p in PARTS[: PARTS.index(part) + 1] if self.has(p))

    @property
    def everything(self) -> tuple[str, ...]:
        """All parts of the plan."""
        return self.up_to("draft")

    @property
    def rows(self) -> list[int]:
        """The prompt rows that run: one where the plan drafts, since several are refused.

        One, too, where the type documents that a padded row is another prompt to it.
        """
        other = self.runs.ignores_padding and self.runs.case.prompt.padded
        return [0] if self.plan.drafts or other else list(self.runs.rows)

    @property
    def turns(self) -> tuple[int, ...]:
        """The positions cached by earlier calls that every row has, and that leave something to continue with."""
        if self.scenario.encoder_decoder or self.scenario.media:
            return ()
        return tuple(sorted({turn for turn in self.plan.turns if turn > self.padding < self.width > turn}))

    @property
    def width(self) -> int:
        """The length of the longest of these rows."""
        return max(len(self.scenario.rows[row]) for row in self.rows)

    @property
    def padding(self) -> int:
        """How many positions of the shortest of these rows are padding."""
        return self.width - min(len(self.scenario.rows[row]) for row in self.rows)

    @cached_property
    def stops(self) -> tuple[int, ...]:
        """The tokens that the custom stop condition waits for."""
        if not self.plan.stop_at:
            return ()
        plain = self.runs.alone[0].tokens(0)
        return tuple(dict.fromkeys(plain[step] for step in self.plan.stop_at if step < len(plain)))

    @property
    def guidance(self) -> float:
        """The guidance scale; what guides starts from the prompt's last id, which must be the decoder's own."""
        return 1.0 if self.scenario.encoder_decoder or self.plan.embeds else self.plan.guidance

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a row: end tokens, and those of the custom stop condition."""
        return (*self.runs.case.settings.eos, *self.stops)

    @property
    def bare(self) -> bool:
        """Whether the call has no mask, and none is needed: one that is guessed from pad tokens would be another."""
        rows = [self.scenario.rows[row] for row in self.rows]
        unpadded = len({len(row) for row in rows}) == 1 and not any(self.runs.case.settings.pad in row for row in rows)
        return self.plan.bare and unpadded

    def start(self, parts: Sequence[str]) -> int:
        """How many ids of the prompt `generate` returns before the new ones."""
        if self.scenario.encoder_decoder:
            return 1
        if "embeds" in parts:
            return 0
        return self.width - (self.turns[-1] if "turns" in parts and self.plan.only_new else 0)
