"""What happens inside one item: draw, judge, record; then shrink each failure that nothing explains yet.

The drawing stage never raises, so Hypothesis always gives the number of cases that was asked for, and no
failure hides another. The shrinking stage makes a failing case plainer part by part; then it draws the same cases again
from the same seed, skips to the failing one, and lets Hypothesis make it smaller, raising an exception type of its
own for each failure.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import hypothesis
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from conformance import interruption
from conformance.case import Case
from conformance.clock import MODEL_CODE
from conformance.events import KIND
from conformance.failures import Failure, same_failure
from conformance.findings import Finding, Findings, size_of
from conformance.isolation import judge_where_it_belongs
from conformance.judge import Judgement
from conformance.options import FEWEST_IN_A_ROUND, ROUND_EXAMPLES, Options
from conformance.plainer import plainer
from conformance.planning import Item
from conformance.profiles import exploring, shrinking
from conformance.records import Recorder
from conformance.scope import as_drawn, on_model_of, on_plainest, settle
from conformance.signature import Key
from conformance.store import Store
from conformance.subjects import Subject
from conformance.verdicts import Difference

SHRINK_SECONDS, LAST_MOMENT = (4.0, 12.0), 3.0  # least and most for a finding, and what comes after the limit
SHRINKS_IN_A_BUDGET = 150  # so many limits are the whole of it: a short run is to look around, too
CUT_OFF = "there was no time to make it as small as it can be, and it may need less"
NOTHING = Difference("missing", "", "", "")  # in a failure of which only its key and its case are asked
Strategy = Callable[[], st.SearchStrategy[Case]]


class Enough(BaseException):
    """The time for drawing or shrinking is up. Not an Exception: Hypothesis would take it for another failure."""


@dataclass
class ItemResult:
    """What an item leaves for its report: counts for the progress line, and messages for its findings."""

    cases: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    new: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    model_seconds: float = 0.0
    events: set[str] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)


class Search:
    """The search of one item."""

    def __init__(
        self,
        item: Item,
        checks: tuple[str, ...],
        options: Options,
        subject: Subject,
        recorder: Recorder,
        findings: Findings,
        store: Store,
        strategy: Strategy,
    ) -> None:
        self.item, self.checks, self.options, self.subject = item, checks, options, subject
        self.recorder, self.findings, self.store, self.strategy = recorder, findings, store, strategy
        self.examples = options.examples or ROUND_EXAMPLES
        self.seed = options.item_seed(item.id)
        self.result = ItemResult()
        self.failures: list[Failure] = []

    def run(self) -> ItemResult:
        """Judge the stored cases, draw and judge new ones, shrink what failed and is not explained yet."""
        start, model_start = time.perf_counter(), MODEL_CODE.seconds
        if self.item.round == 1:
            self._stored()
        try:
            self._explore()
        finally:  # also where the harness breaks: what was found before is kept
            self._account_for_all()
        self.result.seconds = time.perf_counter() - start
        self.result.model_seconds = MODEL_CODE.seconds - model_start
        return self.result

    @property
    def out_of_time(self) -> bool:
        """Whether the run's budget is spent."""
        return self.options.deadline is not None and time.time() >= self.options.deadline

    def _shrink_deadline(self, key: Key) -> float:
        """Within the budget, but for a moment that a failure met at its very end is given.

        Within a budget, what was met in other circumstances before is given less each time: it is rarely news.
        """
        least, most = SHRINK_SECONDS
        if self.options.budget is not None:
            alike = sum(finding.signature.key == key for finding in self.findings)
            most = min(most, self.options.budget * self.options.workers / SHRINKS_IN_A_BUDGET) / (1 + alike)
        end = time.time() + max(least, most)
        return end if self.options.deadline is None else min(end, max(self.options.deadline, time.time() + LAST_MOMENT))

    def _stored(self) -> None:
        for source, case in self.store.cases(self.item.family, self.item.architecture):
            judgement = self._judge(case, counted=False, source=source)
            for check, verdict in judgement.verdicts.items():
                if verdict.status == "pass":
                    self.store.healed(check, case)

    def _explore(self) -> None:
        drawn, start, share = 0, time.perf_counter(), self.options.share_of_the_rest(self.item.left)

        def explore(data: st.DataObject) -> None:
            nonlocal drawn
            case = data.draw(self.strategy())
            # After the draw: to Hypothesis, a test that stops where it drew before is an error of the strategy.
            if self.out_of_time or (drawn > FEWEST_IN_A_ROUND and time.perf_counter() - start > share):
                raise Enough
            drawn += 1
            # Hypothesis always tries the simplest case first: it runs, but a count of it would be of one case.
            self._judge(case, counted=drawn > 1, source="random", index=drawn)

        with contextlib.suppress(Enough):
            self._run_hypothesis(explore, exploring(self.examples + 1))

    def _run_hypothesis(self, body: Callable[[st.DataObject], None], settings: hypothesis.settings) -> None:
        # Made anew for each item: one parametrised `@given` over many items is quadratic without a database.
        hypothesis.seed(self.seed)(settings(hypothesis.given(st.data())(body)))()

    def _judge(self, case: Case, counted: bool, source: str, index: int | None = None) -> Judgement:
        interruption.check()
        self.recorder.start(self.item.id, case)
        judgement = judge_where_it_belongs(case, self.checks, self.subject)
        self.recorder.case(self.item.id, judgement, counted, source)
        self.result.cases += counted
        self.result.events |= judgement.events
        self.result.kinds.update(event for event in judgement.events if counted and event.startswith(KIND))
        for name, verdict in judgement.verdicts.items():
            if counted:
                self.result.verdicts[verdict.status] = self.result.verdicts.get(verdict.status, 0) + 1
            if verdict.status == "fail":
                difference = verdict.differences[0]
                self.failures.append(Failure(Key.of(name, difference), judgement.case, difference, index, source))
        return judgement

    def _account_for_all(self) -> None:
        for number, failure in enumerate(self.failures):
            try:
                self._account_for(failure)
            except KeyboardInterrupt:
                for left in self.failures[number:]:
                    self.findings.add(as_drawn(left, self.options.subject))
                raise

    def _account_for(self, failure: Failure) -> None:
        known = self._explained(failure) or self._new_finding(failure)
        if known.id not in self.result.findings:
            self.result.findings.append(known.id)

    def _explained(self, failure: Failure) -> Finding | None:
        """A finding that accounts for the failure: one of its type; or one of any type that the failing case shows on
        the finding's type, or that the finding's case shows on the failing type.
        """
        could = self.findings.that_could_explain(failure.key, failure.case)
        return next((finding for finding in could if self._is_of(failure, finding)), None)

    def _is_of(self, failure: Failure, finding: Finding) -> bool:
        """Whether a failure that has all that a finding needs is of its type, or shows on it."""
        if finding.case.model_name == failure.case.model_name:
            return True
        return finding.signature.scope == "any" and self._shows_on_both(failure, finding)

    def _shows_on_both(self, failure: Failure, finding: Finding) -> bool:
        moved = on_plainest(failure.case, finding.case.model.architecture)
        return bool(
            same_failure(failure.key, moved, self.subject)
            or same_failure(failure.key, on_model_of(finding.case, failure.case), self.subject)
        )

    def _new_finding(self, failure: Failure) -> Finding:
        start = time.perf_counter()
        again = same_failure(failure.key, failure.case, self.subject)
        smallest, cut_off = self._shrink(failure, again) if again else (failure, False)
        finding = settle(replace(smallest, source=failure.source), self.subject, repeatable=again is not None)
        notes = (*finding.notes, *((CUT_OFF,) if cut_off else ()))
        # The subject's option is what `replay` can load, unlike its own name.
        finding = replace(finding, subject=self.options.subject, notes=notes)
        self.store.save(failure.key.check, finding.case)
        known = self._after_all_of(finding) if again else None
        if known is None and self.findings.add(finding):
            self.result.new = [*(f for f in self.result.new if f.id != finding.id), finding]
            self._take_in(finding)
        finding = known or finding
        self.recorder.line("finding", item=self.item.id, finding=finding.id, seconds=time.perf_counter() - start)
        return finding

    def _after_all_of(self, finding: Finding) -> Finding | None:
        """Another finding of the run that explains this one, now that it is small and it is known what it needs."""
        if any(other.id == finding.id for other in self.findings):
            return None  # met before: the smaller case is kept
        return self._explained(Failure(finding.signature.key, finding.case, NOTHING))

    def _take_in(self, finding: Finding) -> None:
        """Mark the findings of the run, of which nobody knew then what they need, that this one explains."""
        for other in self.findings:
            if other.id == finding.id or self.out_of_time:
                continue
            failure = Failure(other.signature.key, other.case, NOTHING)
            if finding.signature.could_explain(failure.key, failure.case) and self._is_of(failure, finding):
                self.findings.mark_as_part(other, finding)

    def _shrink(self, failure: Failure, again: Failure) -> tuple[Failure, bool]:
        """The smallest case with the same failure that is found in time, and whether that was too short.

        First every part is made plainer that may be, which knows what a case is made of. Then Hypothesis, for what no
        single part shows: within a budget for as long as that took. A stored case is small already.
        """
        if failure.index is None:
            return again, False
        start, deadline = time.time(), self._shrink_deadline(failure.key)
        best = plainer(again, self.subject, deadline + LAST_MOMENT)
        end = deadline if self.options.budget is None else min(deadline, 2 * time.time() - start)
        if time.time() < end:
            smaller = self._shrunk_by_hypothesis(failure, again, end)
            if size_of(smaller.case) < size_of(best.case):
                best = plainer(smaller, self.subject, deadline + LAST_MOMENT)
        return best, time.time() >= deadline + LAST_MOMENT

    def _shrunk_by_hypothesis(self, failure: Failure, again: Failure, deadline: float) -> Failure:
        """The smallest case that comes of smaller draws."""
        kind: type[Exception] = type(f"Fails{abs(hash(failure.key))}", (AssertionError,), {})
        known: dict[Case, Failure | None] = {failure.case: again}  # by the case as drawn or as judged
        drawn, best = 0, again

        def shrink(data: st.DataObject) -> None:
            nonlocal drawn, best
            case = data.draw(self.strategy())
            drawn += 1
            if drawn < (failure.index or 0):
                return
            if case not in known:
                if time.time() > deadline:
                    raise Enough
                known[case] = same_failure(failure.key, case, self.subject)
            found = known[case]
            if found is not None:
                best = min(best, found, key=lambda f: size_of(f.case))
                raise kind(failure.key.check)

        with contextlib.suppress(kind, Enough, Flaky):
            self._run_hypothesis(shrink, shrinking(self.examples + 1))
        return best
