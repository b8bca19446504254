"""What a family adds to a case."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from conformance.case.values import Record

if TYPE_CHECKING:
    from conformance.case.case import Case


class Plan(Record):
    """What a check family adds to a case (a draft plan, a crop program); one subclass a family."""

    family: ClassVar[str]
    known: ClassVar[dict[str, type[Plan]]] = {}

    def tokens(self) -> tuple[int, ...]:
        """The token ids in the plan, all of which must be in the model's vocabulary."""
        return ()

    def within(self, vocabulary: int) -> Self:  # noqa: ARG002
        """The same plan with its tokens wrapped around to fit another vocabulary."""
        return self

    @property
    def model_class(self) -> str:
        """The class of a model that takes the place of the case's; "" where the case's own is used."""
        return ""

    def on_model_of(self, other: Plan | None) -> Self:  # noqa: ARG002
        """The same plan with the model that another plan of the family puts in the place of the case's, if any does."""
        return self

    def fitting(self, rows: int) -> Self:  # noqa: ARG002
        """The same plan for a prompt of so many rows, without what would be of no effect: see `contradiction`."""
        return self

    def contradiction(self, case: Case, vocabulary: int) -> str | None:  # noqa: ARG002
        """What in the case contradicts itself or is of no effect, in a line; None where nothing is.

        Drawing makes no such case. A stored one is refused: it would be judged as another than it says.
        """
        return None

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """The paths that the plan makes a case take, by name; `config` is the model's."""
        return set()

    def traits(self) -> tuple[str, ...]:
        """What a failure on a case with this plan may need, by name: the fields that are not at their default."""
        plainest = type(self)()
        return tuple(n for n in type(self).model_fields if getattr(self, n) != getattr(plainest, n))

    @property
    def alike(self) -> Mapping[str, str]:
        """Needs of which any does as well as another in this family: name → what they are called together."""
        return {}

    def is_circumstance(self, need: str) -> bool:  # noqa: ARG002
        """Whether a need says where a failure was met, and not what it is: of two exceptions that are otherwise told
        alike and need the same, it makes no two causes.
        """
        return False

    def plainer(self) -> Iterator[Self]:
        """Plans with one part plainer than here: each field back at its default."""
        plainest = type(self)()
        for name in type(self).model_fields:
            if getattr(self, name) != getattr(plainest, name):
                yield self.replace(**{name: getattr(plainest, name)})

    def halves(self) -> Iterator[Self]:
        """Plans with half of what is not at its default back at it: the later half first, then the earlier."""
        plainest = type(self)()
        values = {name: getattr(plainest, name) for name in type(self).model_fields}
        changed = [name for name, value in values.items() if getattr(self, name) != value]
        middle = len(changed) // 2
        for half in (changed[middle:], changed[:middle]):
            if len(half) > 1:
                yield self.replace(**{name: values[name] for name in half})

    def constants(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """What the bodies of the family's reproducers take from the plan: name → Python source of its value."""
        return {}

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """Modules of `reporting/scripts` that stand in the place of those which the family's bodies name."""
        return {}

    def stands_alone(self) -> bool:
        """Whether a script without this project can show a failure of a case with this plan."""
        return True

    def rests_on(self, check: str) -> bool:  # noqa: ARG002
        """Whether the rung of this check has to do with a case of this plan, so that a failure may be its."""
        return True

    def __init_subclass__(cls, family: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if family in Plan.known:
            raise TypeError(f"the family {family!r} has a plan already: {Plan.known[family].__name__}")
        cls.family = family
        Plan.known[family] = cls


def known_plans() -> dict[str, type[Plan]]:
    """The plan class of every family."""
    importlib.import_module("conformance.plans")  # each of its modules registers one
    return Plan.known
