"""The plan of the `purity` family."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from conformance.case import Case, Plan


class PurityPlan(Plan, family="purity"):
    """What the caller passes beside the tensors of the prompt, and still owns afterwards.

    keywords: the settings are told one by one, not as a `GenerationConfig`; encoded: the encoder's output is given in
    place of what it encodes; quantized: a quantised cache is asked for, with a dictionary that says how it is made.
    raises: another call, between the first and the second, is ended by a processor of the caller's after so many calls
    of it, less one; 0: there is none.
    """

    keywords: bool = False
    encoded: bool = False
    quantized: bool = False
    raises: Annotated[int, Field(ge=0, le=8)] = 0

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """How the call is told."""
        return {f"told: {name}" for name in type(self).model_fields if getattr(self, name)}

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """How the settings and the encoder's output reach the call."""
        told = {"told": "told_by_keywords"} if self.keywords else {}
        return told | ({"given": "given_encoded"} if self.encoded else {})
