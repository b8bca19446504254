"""Judging in a process of its own, for families whose cases change what is global to a process, or may end it.

A worker keeps one such process as long as it lives. Cases go in as lines of JSON, verdicts come out; Hypothesis stays
in the worker.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from conformance import registry
from conformance.case import Case, parse_case
from conformance.clock import MODEL_CODE
from conformance.errors import BadInput, HarnessBroke
from conformance.judge import Judgement, judge
from conformance.subjects import Subject, load, place_of
from conformance.verdicts import Difference, Verdict

CASE_SECONDS = 150.0  # for one case with all its runs; a single call has its own, shorter limit
READY = "ready\n"
START_SECONDS = 600.0  # for the process to import all that it needs, on a machine that is busy


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

    def start(self) -> None:
        """Start the process if it does not run; comes back when it has loaded what cases need. Raises HarnessBroke."""
        self._running()

    def judge(self, case: Case, checks: tuple[str, ...], subject: str) -> Judgement:
        """The verdicts on a case. A process that ends or hangs on it is a failure. Raises HarnessBroke, BadInput.

        Of which check it is a failure is told by judging them one by one.
        """
        answer = self._answer_to(case, checks, subject)
        if isinstance(answer, Judgement):
            return answer
        if len(checks) == 1:
            return Judgement(case, {checks[0]: _lost(answer)})
        return one_by_one(case, {check: self._answer_to(case, (check,), subject) for check in checks}, answer)

    def _answer_to(self, case: Case, checks: tuple[str, ...], subject: str) -> Judgement | Difference:
        """The verdicts, or how the process was lost."""
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
            return _loss("crash", f"the process ended with code {code}")
        return _judgement(json.loads(answer))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with self._process, suppress(OSError):  # closes its pipes and waits for it
                pass
        self._process = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            # The order of a set of names decides where accelerate runs what no entry of a map covers.
            same = {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            environment = {**os.environ, **same}
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from conformance.isolation import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            _wait_until_ready(self._process)
        return self._process


def _loss(kind: str, got: str) -> Difference:
    return Difference(kind, "process", "a verdict", got, raised_in=got)


def _lost(loss: Difference) -> Verdict:
    return Verdict("fail", differences=(loss,))


def one_by_one(case: Case, answers: dict[str, Judgement | Difference], loss: Difference) -> Judgement:
    """The verdicts of checks that were judged apart after the process was lost on all of them.

    A loss belongs to the lowest rung that meets it, and where none does by itself, to the first check.
    """
    lost = {check: answer for check, answer in answers.items() if isinstance(answer, Difference)}
    verdicts, events = {}, frozenset[str]()
    for check, answer in answers.items():
        if isinstance(answer, Judgement):
            verdicts[check], events = answer.verdicts[check], events | answer.events
            continue
        below = next((rung for rung in registry.below(check) if rung in lost), None)
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


def serve() -> None:
    """What the process does: judge one case after another until its input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    from conformance.warming import warm_up

    warm_up()
    answers.write(READY)
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    start = MODEL_CODE.seconds
    try:
        judgement = judge(parse_case(request["case"]), request["checks"], load(request["subject"]))
    except (BadInput, HarnessBroke) as error:
        cause = f" ({error.__cause__!r})" if error.__cause__ else ""
        return {"error": type(error).__name__, "message": f"{error}{cause}"}
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
