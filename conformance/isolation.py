"""Judging in a process of its own, for families whose cases change what is global to a process, or may end it.

A worker keeps one such process as long as it lives. Cases go in as lines of JSON, verdicts come out; Hypothesis stays
in the worker.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from conformance import registry
from conformance.case import Case, parse_case
from conformance.clock import MODEL_CODE
from conformance.errors import BadInput, HarnessBroke
from conformance.events import ASKED_AGAIN
from conformance.judge import Judgement, judge
from conformance.outcome import Crash
from conformance.subjects import Subject, load, place_of
from conformance.verdicts import Difference, Verdict

CASE_SECONDS = 150.0  # for one case with all its runs; a single call has its own, shorter limit
READY = "ready\n"
START_SECONDS = 600.0  # for the process to import all that it needs, on a machine that is busy
SERVE = "import sys; from conformance.isolation import serve; serve(sys.argv[1])"
ENDED = "the process ended with code"


def judge_where_it_belongs(case: Case, checks: Iterable[str], subject: Subject) -> Judgement:
    """`judge`, in the process of its own where the case's family asks for one."""
    if not registry.families()[case.family].isolated:
        return judge(case, checks, subject)
    return CHILD.judge(case, tuple(checks), place_of(subject))


class Child:
    """The process, started when it is first needed and again after it ended."""

    def __init__(self, seconds: float = CASE_SECONDS) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._folder = ""  # whatever the process writes to a temporary folder; it may be lost before it tidies up

    def start(self) -> None:
        """Start the process if it does not run; comes back when it has loaded what cases need. Raises HarnessBroke."""
        self._running()

    def judge(self, case: Case, checks: tuple[str, ...], subject: str) -> Judgement:
        """The verdicts on a case. A process that ends or hangs on it is a failure. Raises HarnessBroke, BadInput.

        Of which check it is a failure is told by judging them apart.
        """
        answer = self._sure_answer_to(case, checks, subject)
        if isinstance(answer, Judgement):
            return answer
        if len(checks) == 1:
            return Judgement(case, {checks[0]: _lost(answer)})
        base = max(checks, key=lambda check: sum(check in registry.below(other) for other in checks))
        return one_by_one(case, self._apart(case, checks, subject, base), answer, base)

    def _apart(self, case: Case, checks: tuple[str, ...], subject: str, base: str) -> dict[str, Judgement | Difference]:
        """The same for each check by itself, and first for the base, the rung on which most of them stand.

        Where the process is lost on that, it would be on each that stands on it: they are not judged, and the others
        once, together. A start takes seconds, and a hang minutes.
        """
        answers: dict[str, Judgement | Difference] = {base: self._sure_answer_to(case, (base,), subject)}
        if isinstance(answers[base], Difference):
            others = tuple(check for check in checks if check != base and base not in registry.below(check))
            together = self._sure_answer_to(case, others, subject) if others else answers[base]
            answers |= dict.fromkeys(checks, answers[base]) | dict.fromkeys(others, together)
        for check in sorted({*checks} - {*answers}, key=lambda check: (len(registry.below(check)), check)):
            lost = (answers[rung] for rung in registry.below(check) if isinstance(answers.get(rung), Difference))
            answers[check] = next(lost, None) or self._sure_answer_to(case, (check,), subject)
        return {check: answers[check] for check in checks}

    def _sure_answer_to(self, case: Case, checks: tuple[str, ...], subject: str) -> Judgement | Difference:
        """The verdicts, or how the process is lost on the case, and not by chance.

        A process may be ended from outside, by hand or where the machine's memory runs out, and then it gave no
        verdict: another one is asked, and the case has an event that says so. That is no second try at a verdict; a
        case of which the process dies shows it again.
        """
        answer = self._answer_to(case, checks, subject)
        if isinstance(answer, Judgement) or not answer.got.startswith(ENDED):
            return answer
        again = self._answer_to(case, checks, subject)
        return again if isinstance(again, Difference) else replace(again, events=again.events | {ASKED_AGAIN})

    def _answer_to(self, case: Case, checks: tuple[str, ...], subject: str) -> Judgement | Difference:
        """The verdicts, or how the process was lost."""
        try:
            told = self._told(case, checks, subject)
        except BaseException:  # an interrupt: the answer would be taken for that of the next case
            self.close()
            raise
        return told if isinstance(told, Difference) else _judgement(told)

    def _told(self, case: Case, checks: tuple[str, ...], subject: str) -> dict[str, Any] | Difference:
        process = self._running()
        request = {"case": case.to_json(), "checks": checks, "subject": subject}
        answer = ""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], self.seconds)[0]:
                self.close()
                return _loss("hang", f"no verdict within {self.seconds:g} s")
            answer = process.stdout.readline()
        except OSError:
            pass
        if not answer:
            code = process.wait()
            self.close()
            return _loss("crash", f"{ENDED} {code}")
        told: dict[str, Any] = json.loads(answer)
        if "raised" in told:
            self.close()
            return _loss("crash", told["raised"], told["in"])
        return told

    def close(self) -> None:
        """End the process, and remove what it left in its temporary folder."""
        if self._process is not None:
            self._process.kill()
            with self._process, suppress(OSError):  # closes its pipes and waits for it
                pass
        self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = ""

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            # The order of a set of names decides where accelerate runs what no entry of a map covers.
            same = {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._folder = tempfile.mkdtemp(prefix="conformance-")
            environment = {**os.environ, **same, "TMPDIR": self._folder}
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVE, self._folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            _wait_until_ready(self._process)
        return self._process


def _loss(kind: str, got: str, raised_in: str = "") -> Difference:
    return Difference(kind, "process", "a verdict", got, raised_in=raised_in or got)


def _lost(loss: Difference) -> Verdict:
    return Verdict("fail", differences=(loss,))


def one_by_one(case: Case, answers: dict[str, Judgement | Difference], loss: Difference, base: str = "") -> Judgement:
    """The verdicts of checks that were judged apart after the process was lost on all of them.

    A loss belongs to the base, if that meets it: the others were then not judged by themselves; else to the lowest rung
    that meets it, and where none does by itself, to the first check.
    """
    lost = {check: answer for check, answer in answers.items() if isinstance(answer, Difference)}
    verdicts, events = {}, frozenset[str]()
    for check, answer in answers.items():
        if isinstance(answer, Judgement):
            verdicts[check], events = answer.verdicts[check], events | answer.events
            continue
        rungs = registry.below(check) if base not in lost else () if check == base else (base,)
        below = next((rung for rung in rungs if rung in lost), None)
        verdicts[check] = Verdict("blocked-by", below, (answer,)) if below else _lost(answer)
    if not lost:
        verdicts[next(iter(answers))] = _lost(loss)
    return Judgement(case, verdicts, events)


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Until it has imported everything, which no case is to be blamed for."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], START_SECONDS)[0] or process.stdout.readline() != READY:
        raise HarnessBroke("the process that judges this family's cases did not start; its error is above")


CHILD = Child()
atexit.register(CHILD.close)


def serve(folder: str) -> None:
    """What the process does: judge one case after another until its input ends. `folder` is its temporary one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process, and this one is ended by its parent
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    from conformance.warming import warm_up

    warm_up()
    answers.write(READY)
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()
    shutil.rmtree(folder, ignore_errors=True)  # where the parent itself was killed


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    start = MODEL_CODE.seconds
    try:
        judgement = judge(parse_case(request["case"]), request["checks"], load(request["subject"]))
    except (BadInput, HarnessBroke) as error:
        cause = f" ({error.__cause__!r})" if error.__cause__ else ""
        return {"error": type(error).__name__, "message": f"{error}{cause}"}
    except BaseException as error:  # noqa: BLE001 - a subject's that nothing takes for an outcome, such as an interrupt
        crash = Crash.of(error)
        return {"raised": str(crash), "in": f"{crash.type} in {crash.raised_in}"}
    return {
        "case": judgement.case.to_json(),
        "verdicts": {name: asdict(verdict) for name, verdict in judgement.verdicts.items()},
        "events": sorted(judgement.events),
        "figures": dict(judgement.figures),
        "model_seconds": MODEL_CODE.seconds - start,
    }


def _judgement(answer: dict[str, Any]) -> Judgement:
    """What the process answered; its time in model code counts as this one's, which waits for it meanwhile."""
    MODEL_CODE.add(answer.get("model_seconds", 0.0))
    if "error" in answer:
        raise (HarnessBroke if answer["error"] == "HarnessBroke" else BadInput)(answer["message"])
    verdicts = {
        name: Verdict(v["status"], v["reason"], tuple(Difference(**d) for d in v["differences"]))
        for name, v in answer["verdicts"].items()
    }
    return Judgement(parse_case(answer["case"]), verdicts, frozenset(answer["events"]), figures=answer["figures"])
