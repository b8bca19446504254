"""Judge a stored case again, here."""

from __future__ import annotations

from dataclasses import dataclass

from conformance import registry, upstream
from conformance.build import Scenario
from conformance.case import Case
from conformance.errors import NotBuildable
from conformance.globs import select
from conformance.isolation import judge_where_it_belongs
from conformance.judge import Judgement
from conformance.subjects import load


@dataclass(frozen=True)
class Replayed:
    """A judgement, or the reason why there is none."""

    judgement: Judgement | None
    reason: str = ""

    @property
    def exit_code(self) -> int:
        """1 when a check fails, 4 when none applies, else 0."""
        if self.judgement is None:
            return 4
        statuses = {verdict.status for verdict in self.judgement.verdicts.values()}
        if "fail" in statuses:
            return 1
        return 4 if statuses == {"not-applicable"} else 0


def replay(case: Case, checks: str | None = None, subject: str = "installed") -> Replayed:
    """Judge a case that came from outside. Raises BadInput, before anything of its size is built."""
    upstream.quiet()
    names = [check.name for check in registry.checks().values() if check.family == case.family]
    chosen, tested = select(checks, names, f"check of the family {case.family}"), load(subject)
    try:
        scenario = Scenario(case)
        scenario.refuse_large_model()
        if case.fingerprint not in (None, scenario.fingerprint):
            return Replayed(None, "the model differs: names, shapes or config are not those of the stored fingerprint")
    except NotBuildable as error:
        return Replayed(None, str(error))
    return Replayed(judge_where_it_belongs(case, chosen, tested))
