"""What a caller may get wrong, and what one model's placement may do to another: an error in time, or no harm."""

from __future__ import annotations

from typing import Any

from conformance import interruption
from conformance.checks.placement import PLACEMENT
from conformance.outcome import Crash
from conformance.placing.comparing import compare_calls
from conformance.placing.devices import bound_of
from conformance.placing.guards import can_run, cannot_be_had, is_whole, of
from conformance.placing.mistakes import mistaken, of_it, told_by
from conformance.placing.on_planned_map import on_its_own_map
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.snapshots import same
from conformance.verdicts import OF_ANOTHER, Comparison, Difference

# An entry with another name is also one that is not there.
SEEN_AS = {"left out": "no entry", "misspelt": "no entry", "no such device": "no such device"}


@check(PLACEMENT, bitwise=True)
@guarded(cannot_be_had)
@applies("the map has no mistake", lambda runs: bool(runs.case.plan.mistake))
@guarded(can_run)
def wrong_map_is_refused(runs: Runs) -> Comparison:
    """A map with a mistake is refused by an error that names it, or does no harm.

    An entry that is left out, misspelt, or names no device. The error names the entry, a weight or module that only it
    covers, or the device, before anything is decoded. Where it is taken, the model decodes as undispatched.
    """
    own, kind = of(runs), runs.case.plan.mistake
    field = f"map: {SEEN_AS[kind]}"
    asked = own.asked("offloaded by mistake")
    mistake = mistaken(asked, kind, runs.case.model.weight_seed)
    if isinstance(mistake, str):
        return Comparison(not_applicable=mistake)
    wanted = f"an error naming {min(mistake.names)}, or no harm"
    try:
        model = own.placed_by(of_it(asked, mistake))
    except BaseException as error:  # noqa: BLE001 - its words are what is looked at
        interruption.let_through(error)
        if told_by(error, mistake):
            return Comparison()
        return Comparison.of(Difference("unclear", field, wanted, str(Crash.of(error))))
    return _harm(runs, model, field, wanted)


def _harm(runs: Runs, model: Any, field: str, wanted: str) -> Comparison:
    """What comes of a wrong map that was taken."""
    own = of(runs)
    outcome = own.outcome(own.described(model))
    if outcome.crash is not None:
        return Comparison.of(Difference("silent", field, wanted, f"no error, and later {outcome.crash}"))
    if compare_calls(outcome, own.unplaced_outcome, bound_of(runs.case.plan, runs.bound)).differences:
        return Comparison.of(Difference("silent", field, wanted, "no error, and other values"))
    return Comparison(allowed=[f"taken, and no harm done: {field}"])


@check(PLACEMENT, stands_on=["placed-weights-are-the-same"], bitwise=True, excuses=on_its_own_map)
@guarded(is_whole)
@applies("no folder is shared", lambda runs: runs.case.plan.folder == "shared")
@applies("nothing is offloaded", lambda runs: "offloaded" in of(runs).placed.holding)
def placing_another_leaves_the_first(runs: Runs) -> Comparison:
    """A placed model keeps its weights when another one of its class is placed with the same offload folder.

    What is offloaded is read from there in every forward: it is not to be replaced by another model's.
    """
    found = of(runs).beside_another
    if isinstance(found, Crash):
        return Comparison(not_applicable=f"another model cannot be placed beside it: {found.type}")
    before, after, others = found
    expected = "as before another was placed"
    for name in sorted(before):
        if name not in after:
            return Comparison.of(Difference("changed", "weights", expected, f"{name} is there no longer"))
        if not same(before[name], after[name]):
            taken = name in others and same(after[name], others[name])
            field, got = (OF_ANOTHER, "the other model's") if taken else ("weights", "other")
            return Comparison.of(Difference("changed", field, expected, f"{name} has {got} values"))
    return Comparison()
