"""The case itself."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from conformance.case.model import ModelSpec, Prompt
from conformance.case.plan import known_plans
from conformance.case.settings import Settings
from conformance.case.values import Record

SCHEMA_VERSION: Literal[1] = 1
DEFAULT_FAMILY = "cached"


class Case(Record):
    """One situation. `plan` belongs to `family`; `fingerprint` is of the model that was built from it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    family: Annotated[str, Field(max_length=64)] = DEFAULT_FAMILY
    model: ModelSpec = ModelSpec()
    prompt: Prompt = Prompt()
    settings: Settings = Settings()
    plan: Any = None
    fingerprint: Annotated[str, Field(max_length=64)] | None = None

    @model_validator(mode="after")
    def _plan_of_the_family(self) -> Case:
        kind = known_plans().get(self.family)
        if kind is None and self.plan is not None:
            raise ValueError(f"plan: the family {self.family!r} takes none")
        if kind is not None and not isinstance(self.plan, kind):
            object.__setattr__(self, "plan", kind.model_validate({} if self.plan is None else self.plan))
        return self

    def to_dict(self) -> dict[str, Any]:
        """The case as JSON holds it."""
        document = self.model_dump(mode="json", exclude={"plan"})
        if self.plan is not None:
            document["plan"] = self.plan.model_dump(mode="json")
        return document

    def to_json(self) -> str:
        """One line of JSON with sorted keys: equal cases give equal text."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def __repr__(self) -> str:
        rows = "+".join(str(len(row)) for row in self.prompt.rows)
        return (
            f"Case({self.family}: {self.model.architecture} {self.model.dtype} {self.model.attention} "
            f"seed={self.model.weight_seed} scale={self.model.init_scale:g}, prompt {rows}, "
            f"{self.settings.max_new_tokens} new)"
        )

    __str__ = __repr__
