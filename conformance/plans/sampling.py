"""The plan of the `sampling` family: who drafts, and how often the case is run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from conformance.case import Case, Plan
from conformance.plans.prefill import PrefillPlan

TUNING = ("noise", "assistant_seed", "most", "ngram", "draws")


class SamplingPlan(Plan, family="sampling"):
    """Drafts of at most `most` tokens in each of `draws` runs, which differ in their seed only.

    The drafters, `noise` and `assistant_seed` are those of the `prefill` family; `ngram` is of a lookup.
    """

    drafter: Literal["noisy", "other", "shallow", "same", "lookup", "block", "sharing"] = "noisy"
    noise: Annotated[float, Field(ge=0.0, le=1.0)] = 0.3
    assistant_seed: Annotated[int, Field(ge=0, lt=2**16)] = 1
    most: Annotated[int, Field(ge=1, le=4)] = 3
    ngram: Annotated[int, Field(ge=1, le=3)] = 1
    draws: Annotated[int, Field(ge=1, le=1000)] = 200

    @property
    def drafting(self) -> PrefillPlan:
        """The same drafts as a plan of the `prefill` family, whose calls a run makes."""
        return PrefillPlan(**{name: getattr(self, name) for name in type(self).model_fields if name != "draws"})

    @property
    def continuation(self) -> tuple[int, ...]:
        """What the rung below feeds."""
        return self.drafting.continuation

    def sizes(self) -> list[int]:
        """How the rung below groups them."""
        return self.drafting.sizes()

    def traits(self) -> tuple[str, ...]:
        """Without the figures that only tune a draft, or how surely a difference shows."""
        return tuple(name for name in super().traits() if name not in TUNING)

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """Who drafts."""
        return {f"drafter: {self.drafter}"}
