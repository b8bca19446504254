"""The case itself."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

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
    plan: Annotated[Any, Field(validate_default=True)] = None
    fingerprint: Annotated[str, Field(max_length=64)] | None = None

    @field_validator("plan", mode="before")
    @classmethod
    def _plan_of_the_family(cls, plan: Any, info: ValidationInfo) -> Any:
        family = info.data.get("family")
        kind = known_plans().get(str(family))
        if kind is None:
            if plan is not None:
                raise ValueError(f"the family {family!r} takes none")
            return None
        return plan if isinstance(plan, kind) else kind.model_validate({} if plan is None else plan)

    @property
    def model_name(self) -> str:
        """What is run: the class that the plan puts in the place of the case's model, else the model's type."""
        return (self.plan.model_class if self.plan else "") or self.model.architecture

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
            f"Case({self.family}: {self.model_name} {self.model.dtype} {self.model.attention} "
            f"seed={self.model.weight_seed} scale={self.model.init_scale:g}, prompt {rows}, "
            f"{self.settings.max_new_tokens} new)"
        )

    __str__ = __repr__
