"""Stopping one step late on a model whose layers are on several devices."""

from __future__ import annotations

from conformance.checks.placement import PLACEMENT
from conformance.compare import crash_difference
from conformance.placing.guards import beside_plain, of
from conformance.placing.mechanisms import differs_late, lacks_deferral, late, no_transfer
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.statefulness import keeps_state
from conformance.verdicts import Comparison


def _is_right_unplaced(runs: Runs) -> str | None:
    """Why the undispatched model does not show what is right: the family `stopping` tells of it."""
    own = of(runs)
    if reason := lacks_deferral(own):
        return reason
    one_late = late(own, own.unplaced)
    if one_late.crash is not None:
        return f"stopping one step late raises {one_late.crash.type} without a placement"
    alike = not differs_late(own.unplaced_outcome, one_late).differences
    return None if alike else "stopping one step late leaves a trace without a placement"


@check(PLACEMENT, stands_on=["placed-matches-unplaced"], compares="itself", bitwise=True)
@guarded(beside_plain("late stop"))
@guarded(_is_right_unplaced)
@applies("the type keeps something from call to call", lambda runs: not keeps_state(runs.case.model))
def placed_late_stop_matches_immediate(runs: Runs) -> Comparison:
    """With layers on several devices, stopping one step late gives bitwise what stopping at once gives.

    The flag arrives late from the device of the token ids, an event stands for the copies of its own device only, and
    an undone step is undone in the cache of every device.
    """
    own = of(runs)
    one_late = late(own, own.placed)
    if one_late.crash is not None:
        return crash_difference(one_late.crash, "stopping at once works on the same placed model")
    if reason := no_transfer(one_late):
        return Comparison(not_applicable=reason)
    seen = one_late.extra["deferral"]
    if not seen.deferred:
        return Comparison(not_applicable="stopping is not deferred here")
    undone = seen.forwards > own.placed_outcome.steps
    runs.events |= {"mechanism: late stop"} | ({"mechanism: late stop, a step undone"} if undone else set())
    return differs_late(own.placed_outcome, one_late)
