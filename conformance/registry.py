"""Checks: named rules with the guards that say where they apply.

A check is one decorated function; its name is its document's name. Guards are stacked decorators, so that
the body is only the rule.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from conformance.errors import unknown
from conformance.verdicts import Comparison

if TYPE_CHECKING:
    from conformance.runs import Runs
    from conformance.subjects import Subject

Rule = Callable[["Runs"], Comparison]
Guard = Callable[["Runs"], "str | None"]
Excuses = Callable[["Subject"], "Iterable[Subject]"]


def no_excuses(_: Subject) -> Iterable[Subject]:
    """Nothing but the release as it is."""
    return ()


@dataclass(frozen=True)
class Check:
    """A registered rule.

    stands_on: the checks of the rungs below; script: the body of its reproducer (see reporting.repro);
    guards: each gives the reason why the rule does not apply to a case, or None; compares: `subject` when the
    rule judges the subject, so that the installed release may be to blame, `pair` when it sets two loops
    against each other, `itself` when both runs are the subject's own, so that no other is to blame; answered_by: the
    method of a subject whose answer is judged where it has one: the installed release, which has none, is no excuse
    then; bitwise: it compares without a tolerance, so that it cannot end in a tie; excuses: more ways in which the
    release does the same, for a subject: where it fails alike in one of them, the subject is not to blame.
    """

    name: str
    family: str
    rule: Rule
    guards: tuple[Guard, ...]
    stands_on: tuple[str, ...]
    script: str
    compares: str = "subject"
    bitwise: bool = False
    answered_by: str = ""
    document: str = field(repr=False, default="")
    excuses: Excuses = no_excuses

    def not_applicable(self, runs: Runs) -> str | None:
        """The first guard's reason, or None."""
        return next((reason for guard in self.guards if (reason := guard(runs))), None)


@dataclass(frozen=True)
class Family:
    """Checks that share a case: what the strategy draws, and the events that a run must reach.

    floors: event → least share of the family's cases, in force from `FLOOR_CASES` cases on; promised: event → the one
    that promises it: where `PROMISED_CASES` cases met this one, some must have met that one as well, whatever part of
    the family is selected; architectures: the types that it runs on, of those selected (None: all); isolated: its cases
    are judged in a process of their own; nightly: outside the profile `nightly` its checks run only where they are
    named; media: its prompts hold images or sound, so that the types which take them are selected by default as well.
    """

    name: str
    floors: dict[str, float] = field(default_factory=dict)
    promised: dict[str, str] = field(default_factory=dict)
    reachable: tuple[str, ...] = ()
    architectures: tuple[str, ...] | None = None
    isolated: bool = False
    nightly: bool = False
    media: bool = False


FLOOR_CASES = 500
PROMISED_CASES = 5
_checks: dict[str, Check] = {}
_families: dict[str, Family] = {}


def family(
    name: str,
    *,
    floors: dict[str, float] | None = None,
    promised: dict[str, str] | None = None,
    reachable: Iterable[str] = (),
    architectures: Iterable[str] | None = None,
    isolated: bool = False,
    nightly: bool = False,
    media: bool = False,
) -> Family:
    """Register a family, by a constant of a module in `conformance.checks`. TypeError when the name is taken.

    Its name, `architectures`, `nightly` and `media` must be literals: a run is planned from the source text.
    """
    if name in _families:
        raise TypeError(f"the family {name!r} is registered already")
    events, types = tuple(sorted({*reachable, *(floors or {})})), None if architectures is None else (*architectures,)
    _families[name] = Family(name, dict(floors or {}), dict(promised or {}), events, types, isolated, nightly, media)
    return _families[name]


def applies(reason: str, when: Callable[[Runs], bool]) -> Callable[[Rule], Rule]:
    """A guard: where `when` is false the check is not applicable, for this reason."""

    def guard(runs: Runs) -> str | None:
        return None if when(runs) else reason

    return lambda rule: _with_guard(rule, guard)


def guarded(guard: Guard) -> Callable[[Rule], Rule]:
    """A guard that finds its own reason: the check is not applicable where `guard` gives one."""
    return lambda rule: _with_guard(rule, guard)


def _with_guard(rule: Rule, guard: Guard) -> Rule:
    rule.guards = (guard, *getattr(rule, "guards", ()))  # type: ignore[attr-defined]
    return rule


def check(
    family: Family,
    *,
    stands_on: Iterable[str] = (),
    script: str = "",
    compares: Literal["subject", "pair", "itself"] = "subject",
    bitwise: bool = False,
    answered_by: str = "",
    excuses: Excuses = no_excuses,
) -> Callable[[Rule], Rule]:
    """Register a rule under its function's name with dashes. TypeError for a duplicate or a missing document."""

    def register(rule: Rule) -> Rule:
        name = rule.__name__.replace("_", "-")
        if name in _checks:
            raise TypeError(f"the check {name!r} is registered already, in {_checks[name].rule.__module__}")
        if not rule.__doc__:
            raise TypeError(f"the check {name!r} needs a docstring: the rule and why it must hold")
        guards = tuple(getattr(rule, "guards", ()))
        below, document = tuple(stands_on), rule.__doc__
        _checks[name] = Check(
            name, family.name, rule, guards, below, script, compares, bitwise, answered_by, document, excuses
        )
        return rule

    return register


@cache
def load() -> None:
    """Import every module of `conformance.checks`: adding a family is adding a file there, or several."""
    import conformance.checks as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def checks() -> dict[str, Check]:
    """Every check by name, sorted."""
    load()
    return dict(sorted(_checks.items()))


def families() -> dict[str, Family]:
    """Every family by name, sorted."""
    load()
    return dict(sorted(_families.items()))


def get(name: str) -> Check:
    """The check of that name; BadInput with the closest valid names otherwise."""
    try:
        return checks()[name]
    except KeyError:
        raise unknown("check", name, checks()) from None


def below(name: str) -> tuple[str, ...]:
    """The checks of all lower rungs of a check, lowest first."""
    order: list[str] = []
    for lower in get(name).stands_on:
        order += [n for n in (*below(lower), lower) if n not in order]
    return tuple(order)
