"""A failing check on a case, before anything is known of its cause."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.case import Case
from conformance.errors import BadInput, HarnessBroke, NotBuildable
from conformance.isolation import judge_where_it_belongs
from conformance.signature import Key
from conformance.subjects import Subject
from conformance.verdicts import Difference


@dataclass(frozen=True)
class Failure:
    """`index` is the case's place among its item's draws, None for a case that was not drawn there."""

    key: Key
    case: Case
    difference: Difference
    index: int | None = None
    source: str = "random"


def same_failure(key: Key, case: Case, subject: Subject) -> Failure | None:
    """The failure of this key on another case, or None when that case fails otherwise or not at all."""
    try:
        judgement = judge_where_it_belongs(case, [key.check], subject)
    except (BadInput, NotBuildable, HarnessBroke):  # the drawn case that breaks the harness is reported as such
        return None
    verdict = judgement.verdicts[key.check]
    shown = verdict.differences if verdict.status == "fail" else ()
    found = next((difference for difference in shown if Key.of(key.check, difference) == key), None)
    return None if found is None else Failure(key, judgement.case, found)
