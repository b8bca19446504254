"""One case in, one verdict for every check of its family out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance import registry
from conformance.case import Case
from conformance.errors import BadInput, NotBuildable
from conformance.registry import Check
from conformance.runs import Runs
from conformance.subjects import Subject
from conformance.verdicts import Verdict


class HarnessBroke(RuntimeError):
    """A check itself raised: our fault, never a verdict."""


@dataclass
class Judgement:
    """The verdicts of one case, the paths it took, and its runs for whoever wants to look closer."""

    case: Case
    verdicts: dict[str, Verdict]
    events: frozenset[str] = frozenset()
    runs: Runs | None = field(default=None, repr=False)

    def failures(self) -> dict[str, Verdict]:
        """The checks that failed."""
        return {name: verdict for name, verdict in self.verdicts.items() if verdict.status == "fail"}


def judge(case: Case, checks: Iterable[str], subject: Subject) -> Judgement:
    """Run the named checks of the case's family, the ladder included.

    A difference is blamed on the lowest rung that differs on the same case. Raises HarnessBroke.
    """
    names = tuple(checks)
    try:
        runs = Runs(case, subject)
        _ = runs.scenario.model_class
    except NotBuildable as error:
        verdict = Verdict("not-applicable", f"not buildable: {str(error)[:200]}")
        return Judgement(case, dict.fromkeys(names, verdict))
    memo: dict[str, Verdict] = {}
    verdicts = {name: _verdict(registry.get(name), runs, memo) for name in names}
    return Judgement(case, verdicts, frozenset(runs.events), runs)


def _verdict(check: Check, runs: Runs, memo: dict[str, Verdict]) -> Verdict:
    if check.name not in memo:
        memo[check.name] = _blamed(check, _own_verdict(check, runs), runs, memo)
    return memo[check.name]


def _own_verdict(check: Check, runs: Runs) -> Verdict:
    try:
        reason = check.not_applicable(runs)
        return Verdict("not-applicable", reason) if reason else Verdict.from_comparison(check.rule(runs))
    except BadInput:
        raise
    except Exception as error:
        raise HarnessBroke(f"the check {check.name} raised on {runs.case.to_json()}") from error


def _blamed(check: Check, verdict: Verdict, runs: Runs, memo: dict[str, Verdict]) -> Verdict:
    """The verdict, or `blocked-by` the lowest rung that differs on the same case.

    A crash is blocked only by a rung that crashes too: other values below do not explain an exception.
    """
    if verdict.status != "fail":
        return verdict
    for lower in registry.below(check.name):
        below = _verdict(registry.get(lower), runs, memo)
        if below.status in ("fail", "known") and (_crashes(below) or not _crashes(verdict)):
            return Verdict("blocked-by", lower, verdict.differences)
    return verdict


def _crashes(verdict: Verdict) -> bool:
    return any(difference.kind == "crash" for difference in verdict.differences)
