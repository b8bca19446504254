"""Whether `is_croppable` tells the truth where it says no, and says the same after other calls."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from conformance import upstream
from conformance.outcome import Crash
from conformance.plans.rollback import SHORT, STATIC
from conformance.plans.rollback_programs import Op, windows_of
from conformance.programs.interpreter import Interpreter
from conformance.programs.prepared import interpreter, plan_of, prepared, run
from conformance.programs.truths import Unusable
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

TRIES = ((1, 1), (3, 1), (3, 3), (4, 2))  # (tokens fed in one forward, tokens taken back)
FARTHEST, ROOM = 40, 12  # tokens beyond the prompt that are fed at most; beyond what the case's program needs


def croppable_whatever_ran_before(runs: Runs) -> Comparison:
    """The same short static-cache call of the shortest row on a new model and on one that made a longer call before."""
    plan = plan_of(runs)
    if plan.cache not in STATIC or not plan.earlier:
        return Comparison(not_applicable="the plan has no earlier call with a static cache")
    new, used, row = runs.scenario.model(), runs.scenario.model(), shortest(runs)
    with torch.no_grad():
        try:
            prepared(runs, used, SHORT + plan.earlier, [row])
            said = [upstream.says_croppable(prepared(runs, model, SHORT, [row]).cache) for model in (new, used)]
        except Exception as error:  # noqa: BLE001 - a type that takes no static cache: another check's finding
            return Comparison(not_applicable=f"generate prepares no static cache: {Crash.of(error)}"[:200])
    runs.events.add("static: after a longer call")
    if said[0] == said[1]:
        return Comparison()
    return Comparison.of(
        Difference(
            "changed", "is_croppable", f"{said[0]}, as on a new model", f"{said[1]}", f"row {row}, after a longer call"
        )
    )


def shortest(runs: Runs) -> int:
    """The number of the shortest row: the one that a window holds first."""
    return min(runs.rows, key=lambda row: len(runs.case.prompt.rows[row]))


def croppable_after_all(runs: Runs) -> Comparison:
    """Where a filled, recording cache says that it is not croppable: whether every crop works all the same."""
    if plan_of(runs).cache == "fp8":
        return Comparison(not_applicable="a layer of eight bits would not show what a crop lost")
    try:
        found = interpreter(runs, more=ROOM)
        run(found, (Op(op="prefill"), Op(op="record")))
    except Unusable as error:
        return Comparison(not_applicable=f"the prompt raises on this cache: {error}"[:200])
    if not found.filled or not found.recording or upstream.says_croppable(found.machine.cache) is not False:
        return Comparison(not_applicable="a filled, recording cache does not say that it is not croppable")
    runs.events.add("is_croppable: says no")
    tries = list(_tries(runs, found))
    if not tries:
        return Comparison(not_applicable="there is no room to try crops beyond every window")
    if all(_works(runs, program) for program in tries):
        wanted = f"True: all {len(tries)} crops that were tried put the cache back"
        return Comparison.of(Difference("changed", "is_croppable", wanted, "False"))
    return Comparison()


def _tries(runs: Runs, found: Interpreter) -> Iterator[tuple[Op, ...]]:
    """Near the prompt's length, and beyond every window; none where there is no room for that."""
    start, plan = found.truths.prepared.input_ids.shape[1], plan_of(runs)
    room = plan.reach + plan.slack + ROOM if plan.cache in STATIC else FARTHEST
    beyond = max(0, max(windows_of(runs.scenario.config), default=0) + 1 - start)
    if beyond + max(fed for fed, _ in TRIES) > room:
        return
    for fed, back in TRIES:
        for before in {0, beyond}:
            yield (*_feeds(before), Op(op="record"), *_feeds(fed), Op(op="crop", count=back))


def _feeds(count: int) -> Iterator[Op]:
    for first in range(0, count, 8):
        yield Op(op="feed", tokens=tuple(2 + n for n in range(min(8, count - first))))


def _works(runs: Runs, program: tuple[Op, ...]) -> bool:
    try:
        steps = run(interpreter(runs, more=ROOM, strict=True), (Op(op="prefill"), *program))
    except Unusable:
        return False
    last = steps[-1]
    return last.op.op == "crop" and last.refusal is None and not last.broken
