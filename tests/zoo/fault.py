"""What the zoo's tables hold: a fault, the check meant for it, and what it must be seen as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from conformance.case import Case, Settings
from conformance.subjects.installed import Installed


@dataclass(frozen=True)
class Fault:
    """`seen_as`: the (kind, field) that the difference may have; `also`: other check → why it may fail too.

    `examples`: it is found within so many counted examples of one item.
    rare: few cases meet it, so that finding it takes longer than a quick test may, unless each is `steered` to it.
    """

    found_by: str
    seen_as: frozenset[tuple[str, str]]
    subject: Callable[[], Any] = Installed
    planted: Callable[[], AbstractContextManager[None]] = nullcontext
    also: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "llama"
    examples: int = 50
    rare: bool = False
    steered: Callable[[Case], Case] | None = None

    @property
    def name(self) -> str:
        return self.subject().name if self.planted is nullcontext else self.planted.__name__.replace("_", "-")


def steered(plan: Mapping[str, Any], **settings: Any) -> Callable[[Case], Case]:
    """Gives a drawn case one row, these plan fields, and eight new tokens that only `settings` end or steer."""

    def steer(case: Case) -> Case:
        return case.replace(
            prompt=case.prompt.replace(rows=case.prompt.rows[:1]),
            settings=Settings(**{"max_new_tokens": 8, **settings}),
            plan=case.plan.replace(**plan),
        )

    return steer


def seen(*pairs: tuple[str, str]) -> frozenset[tuple[str, str]]:
    """The (kind, field) pairs that a difference may have."""
    return frozenset(pairs)
