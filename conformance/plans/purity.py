"""The plan of the `purity` family."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from conformance.case import Case, Plan
from conformance.plans.own_generate import OwnGenerateClass


class PurityPlan(Plan, family="purity"):
    """What the caller passes beside the tensors of the prompt, and still owns afterwards.

    keywords: the settings are told one by one, not as a `GenerationConfig`; encoded: the encoder's output is given in
    place of what it encodes; quantized: a quantised cache is asked for, with a dictionary that says how it is made.
    raises: another call, between the first and the second, is ended by a processor of the caller's after so many calls
    of it, less one; 0: there is none. by_itself: the class of a model with a `generate` of its own, in the place of the
    case's; it is called as its recipe says, and nothing else here means anything then.
    """

    keywords: bool = False
    encoded: bool = False
    quantized: bool = False
    by_itself: OwnGenerateClass = ""
    raises: Annotated[int, Field(ge=0, le=8)] = 0

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """How the call is told."""
        if self.by_itself:
            return {"decodes by itself"}
        return {f"told: {name}" for name in type(self).model_fields if getattr(self, name)}

    def traits(self) -> tuple[str, ...]:
        """What differs from the plainest call, the class of a model that decodes by itself with its name."""
        found = super().traits()
        return tuple(f"by_itself: {self.by_itself}" if name == "by_itself" else name for name in found)

    def stands_alone(self) -> bool:
        """Not with a recipe of a model, which is this project's."""
        return not self.by_itself

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """How the settings and the encoder's output reach the call."""
        told = {"told": "told_by_keywords"} if self.keywords else {}
        return told | ({"given": "given_encoded"} if self.encoded else {})
