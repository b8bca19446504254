"""One case in, one verdict for every check of its family out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from conformance import registry
from conformance.case import Case
from conformance.errors import BadInput, HarnessBroke, NotBuildable, NotOffered
from conformance.oracle import OracleRaised
from conformance.registry import Check
from conformance.runs import Runs
from conformance.subjects import Subject
from conformance.subjects.installed import Installed
from conformance.verdicts import Difference, Verdict


@dataclass
class Judgement:
    """The verdicts of one case, the paths it took, what it measured, and its runs for who wants to look closer.

    case: the judged one, in which end tokens told by place have been looked up.
    """

    case: Case
    verdicts: dict[str, Verdict]
    events: frozenset[str] = frozenset()
    figures: Mapping[str, float] = field(default_factory=dict)
    runs: Runs | None = field(default=None, repr=False)

    def failures(self) -> dict[str, Verdict]:
        """The checks that failed."""
        return {name: verdict for name, verdict in self.verdicts.items() if verdict.status == "fail"}


def judge(case: Case, checks: Iterable[str], subject: Subject) -> Judgement:
    """Run the named checks of the case's family, the ladder included. Raises HarnessBroke.

    A difference is blamed on the lowest rung that differs on the same case; and where another subject than
    the installed release fails, on the release, if that fails the same check in the same way. Where the two are
    compared with each other, the one that fails a rung below is to blame.
    """
    names = tuple(checks)
    try:
        runs = Runs(case, subject)
        _ = runs.scenario.pristine
    except NotBuildable as error:
        verdict = Verdict("not-applicable", f"not buildable: {str(error)[:200]}")
        return Judgement(case, dict.fromkeys(names, verdict))
    verdicts = Verdicts(runs)
    made = {name: verdicts.of(name) for name in names}
    return Judgement(runs.case, made, frozenset(runs.events), runs.figures, runs)


class Verdicts:
    """The verdicts of one case, each made once, by whichever check asks for it first."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._made: dict[str, Verdict] = {}

    def of(self, name: str) -> Verdict:
        """The verdict of a check, blamed on the rung where it belongs."""
        if name not in self._made:
            self._made[name] = self._blamed(registry.get(name))
        return self._made[name]

    def _blamed(self, check: Check) -> Verdict:
        verdict = own_verdict(check, self.runs)
        if verdict.status not in ("fail", "blocked-by"):
            return verdict
        for lower in self._rungs_below(check):
            below = self.of(lower)
            if below.status in ("fail", "known", "blocked-by") and self._explains(below, verdict):
                lowest = below.reason if below.status == "blocked-by" else lower
                return Verdict("blocked-by", lowest, verdict.differences)
        if verdict.status == "blocked-by":  # by what the check itself saw of the rung, on other tokens
            release = "installed " if self._installed_fails_too(check, verdict) else ""
            return replace(verdict, reason=f"{release}{verdict.reason}")
        if check.compares == "subject" and self._installed_fails_too(check, verdict):
            return Verdict("blocked-by", f"installed {check.name}", verdict.differences)
        if check.compares == "pair" and (wrong := self._wrong_in_the_installed(check)):
            return Verdict("blocked-by", f"installed {wrong}", verdict.differences)
        return verdict

    def _explains(self, below: Verdict, verdict: Verdict) -> bool:
        """Whether what is wrong below may be why the check fails.

        A crash is explained only by a rung that crashes too, not by other values; but where the model's own code raises
        in another subject's loop than the release's, on a case that the model itself decodes wrongly, that is why.
        """
        if _crashes(below) or not _crashes(verdict):
            return True
        return self.runs.subject.name != Installed.name and all(map(_of_the_model, verdict.differences))

    def _rungs_below(self, check: Check) -> tuple[str, ...]:
        """The rungs below that have to do with the case, lowest first."""
        plan = self.runs.case.plan
        return tuple(name for name in registry.below(check.name) if plan is None or plan.rests_on(name))

    def _wrong_in_the_installed(self, check: Check) -> str | None:
        """A rung below that the installed release fails where the subject, which it is compared with, does not."""
        if self.runs.subject.name == Installed.name:
            return None
        installed = Runs(self.runs.case, Installed())
        below = self._rungs_below(check)
        return next((name for name in below if own_verdict(registry.get(name), installed).status == "fail"), None)

    def _installed_fails_too(self, check: Check, verdict: Verdict) -> bool:
        if self.runs.subject.name == Installed.name or self._answers_itself(check):
            return False
        # A subject may name more ways in which the release does the same; the check knows some without a word of it.
        also = getattr(self.runs.subject, "also_installed", lambda _: ())(check.name)
        also = (*also, *check.excuses(self.runs.subject))
        cases = _told_without_records(self.runs.case) if _crashes(verdict) else [self.runs.case]
        for case, installed in product(cases, (Installed(), *also)):
            theirs = next(iter(own_verdict(check, Runs(case, installed)).differences), None)
            if theirs is not None and alike(theirs, verdict.differences[0]):
                return True
        return False

    def _answers_itself(self, check: Check) -> bool:
        """Whether the check judges what only the subject offers, as an audit: the release need not do as well."""
        method = check.answered_by
        return bool(method) and hasattr(self.runs.subject, method) and not hasattr(Installed, method)


def own_verdict(check: Check, runs: Runs) -> Verdict:
    """What the check itself says, whatever the rungs below say."""
    try:
        reason = check.not_applicable(runs)
        return Verdict("not-applicable", reason) if reason else Verdict.from_comparison(check.rule(runs))
    except OracleRaised as error:
        return Verdict("not-applicable", f"the oracle cannot run: {error}"[:200])
    except NotOffered as error:
        return Verdict("not-applicable", str(error))
    except BadInput:
        raise
    except Exception as error:
        raise HarnessBroke(f"the check {check.name} raised {error!r:.300} on {runs.case.to_json()}") from error


def _told_without_records(case: Case) -> list[Case]:
    """The case, and where it asks for attentions or hidden states the same without: a release that cannot record them
    raises for that, before it comes to what another subject raises for.
    """
    bare = case.replace(settings=case.settings.replace(output_attentions=False, output_hidden_states=False))
    return list(dict.fromkeys((case, bare)))


def alike(one: Difference, other: Difference) -> bool:
    """The same difference of two subjects.

    An exception, or what should be one, is the same wherever it is raised; and where one function raises the same type,
    it is the same whatever it says, since what is met first may differ from one loop to the other.
    """
    said = [difference.got.rsplit(" (in ", 1)[0] for difference in (one, other)]
    raised = one.kind == "crash" or one.field.endswith("refusal")
    same_place = bool(one.raised_in) and one.raised_in == other.raised_in
    return (one.kind, one.field) == (other.kind, other.field) and (not raised or same_place or said[0] == said[1])


def _of_the_model(difference: Difference) -> bool:
    """Whether a model's code raised it."""
    return " in modeling_" in difference.raised_in


def _crashes(verdict: Verdict) -> bool:
    return any(difference.kind == "crash" for difference in verdict.differences)
