"""The plan of the `tied` family."""

from __future__ import annotations

from typing import Any, Literal

from conformance.case import Case, Plan

Wrong = Literal["", "target", "source", "two sources"]


class TiedPlan(Plan, family="tied"):
    """A wrong pair beside the case's own: one whose target or source matches nothing, or a second source."""

    wrong: Wrong = ""

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """Which of the wrong pairs the case has."""
        return {f"wrong pair: {self.wrong}"} if self.wrong else set()

    def traits(self) -> tuple[str, ...]:
        """The wrong pair."""
        return (f"wrong pair: {self.wrong}",) if self.wrong else ()
