"""What a streamer receives while something is drafted."""

from __future__ import annotations

from conformance.checks.prefill import PREFILL
from conformance.compare import crash_difference
from conformance.drafting.guards import has, runs_at_all
from conformance.drafting.modes import modes
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.streams import ended_once
from conformance.verdicts import Comparison, Difference


@check(PREFILL, stands_on=["mode-is-repeatable"], script="drafted_streamed", bitwise=True)
@applies(
    "an assistant that goes on where the last call ended drafts otherwise",
    lambda runs: runs.case.plan.schedule != "heuristic",
)
@applies("no streamer is given", lambda runs: runs.case.plan.streamed)
@applies("nothing is drafted", has("draft"))
@applies("the run raises", runs_at_all)
def drafts_are_streamed(runs: Runs) -> Comparison:
    """A streamer receives the prompt, then every new token once and in order, some at a time, then `end` once."""
    own = modes(runs)
    outcome = own.run(own.everything, own.model(own.everything), stream=True)
    if outcome.crash:
        return crash_difference(outcome.crash, "the call without a streamer works")
    assert outcome.sequences is not None
    start = own.start(own.everything)
    calls = [call.flatten().tolist() for call in outcome.streamed]
    prompt, new = outcome.sequences[0, :start].tolist(), outcome.sequences[0, start:].tolist()
    got = [token for call in calls[1:] for token in call]
    if calls[:1] != [prompt]:
        return Comparison.of(Difference("tokens", "streamed", str([prompt]), str(calls[:1]), "call 0"))
    if got != new:
        kind = "tokens" if len(got) == len(new) else "length"
        return Comparison.of(Difference(kind, "streamed", str(new), str(got), "after the prompt"))
    return ended_once(outcome)
