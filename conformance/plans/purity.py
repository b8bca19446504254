"""The plan of the `purity` family."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator
from typing_extensions import Self

from conformance.case import Case, Plan
from conformance.plans.own_generate import OwnGenerateClass


class PurityPlan(Plan, family="purity"):
    """What the caller passes beside the tensors of the prompt, and still owns afterwards.

    keywords: the settings are told one by one, not as a `GenerationConfig`; by_model: they are the generation config of
    the model, and the caller tells nothing; encoded: the encoder's output is given in place of what it encodes; seen:
    what the tower makes of images is given in their place; unmasked: no attention mask is given where nothing is
    padded; positions: those of the prompt are given, where the type takes any; criterion: end tokens are told by the
    release's own stopping criterion for them, where nothing else that is asked for needs to know them. quantized: a
    quantised cache is asked for, with a dictionary that says how it is made; static: a cache of fixed size, which some
    releases keep for the next call.
    raises: another call, between the first and the second, is ended by a processor of the caller's after so many calls
    of it, less one; 0: there is none. by_itself: the class of a model with a `generate` of its own, in the place of the
    case's; it is called as its recipe says, and nothing else here means anything then.
    """

    keywords: bool = False
    by_model: bool = False
    encoded: bool = False
    seen: bool = False
    unmasked: bool = False
    positions: bool = False
    criterion: bool = False
    quantized: bool = False
    static: bool = False
    by_itself: OwnGenerateClass = ""
    raises: Annotated[int, Field(ge=0, le=8)] = 0

    @model_validator(mode="after")
    def _told_once(self) -> Self:
        """Settings are told in one way."""
        if self.keywords and self.by_model:
            raise ValueError("the settings are told by keywords or by the model, not both")
        return self

    @property
    def otherwise(self) -> bool:
        """Whether the same request is told in another way than by a config, ids and a mask."""
        settings = (self.keywords, self.by_model, self.criterion)
        return any((*settings, self.encoded, self.seen, self.unmasked, self.positions))

    @property
    def model_class(self) -> str:
        """The class of a model that decodes by itself."""
        return self.by_itself

    def on_model_of(self, other: Plan | None) -> Self:
        """The same plan with the class that another names."""
        return self.replace(by_itself=other.by_itself if isinstance(other, PurityPlan) else "")

    def plainly(self) -> PurityPlan:
        """The same request told by a config, ids and a mask: the cache that is asked for is as it was."""
        return PurityPlan(quantized=self.quantized, static=self.static)

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
        """Not with a recipe of a model, which is this project's, images encoded, a criterion, or two ways at once."""
        return not (self.by_itself or self.seen or self.criterion) and self.encoded + self.unmasked + self.positions < 2

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """How the settings and the prompt reach the call."""
        ways = {"keywords": "told_by_keywords", "by_model": "told_by_model"}
        ways |= {name: f"given_{name}" for name in ("encoded", "unmasked", "positions")}
        return {form.partition("_")[0]: form for name, form in ways.items() if getattr(self, name)}
