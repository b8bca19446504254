"""What a streamer receives."""

from __future__ import annotations

from conformance.checks.purity import PURITY, afresh, cannot_be_had, plan_of, watched
from conformance.compare import crash_difference
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.streams import streamed_step_by_step
from conformance.verdicts import Comparison


@check(PURITY, script="streamer", bitwise=True)
@guarded(cannot_be_had)
@applies("a model that decodes by itself streams in a way of its own", lambda runs: not plan_of(runs).by_itself)
@applies("the call raises without a streamer too", lambda runs: afresh(runs).crash is None)
def streamer_sees_the_sequence(runs: Runs) -> Comparison:
    """A streamer receives the prompt, then every step's tokens once and in order, then `end` once."""
    outcome = watched(runs)
    if outcome.crash:
        return crash_difference(outcome.crash, "the call without a streamer works")
    return streamed_step_by_step(outcome)
