"""What a hook of the caller's that raised has left behind, stopping at once and one step late."""

from __future__ import annotations

from dataclasses import dataclass

from conformance import upstream
from conformance.cache_contents import without_garbage
from conformance.call import Call
from conformance.compare import compare_exactly, unnumbered
from conformance.outcome import Outcome
from conformance.runs import Runs
from conformance.simulation.deferral import Deferral
from conformance.simulation.hooks import CountingCriterion, RaisingStreamer, StatefulProcessor
from conformance.snapshots import Flat, snapshot
from conformance.stopping.calls import call_of
from conformance.stopping.pairs import AT_ONCE, LAGS, LATE
from conformance.verdicts import Comparison, Difference


@dataclass
class Raised:
    """One call in which a hook raised, and the plain call after it on the same model.

    recording: whether the caller's cache recorded past states before and after; cache: what that cache holds; told:
    what hooks of the caller's were told, by name.
    """

    outcome: Outcome
    following: Outcome
    recording: tuple[bool, bool]
    cache: Flat
    told: dict[str, int]


def after_error(runs: Runs) -> tuple[Raised, Raised]:
    """The call with a hook that raises, each on a model of its own: at once, late."""
    return runs.once("after error", lambda: (_raised(runs, AT_ONCE), _raised(runs, LATE)))


def _raised(runs: Runs, mechanism: str) -> Raised:
    call, model = call_of(runs, raises=True).replace(mechanism=mechanism), runs.scenario.model()
    name = upstream.cache_name(call.extras)
    cache = call.extras[name] if name else None
    before = upstream.records(cache)
    outcome = runs.run(call, model=model, watch=True, probes=[Deferral(LAGS[runs.case.plan.lag])])
    recording, held = (before, upstream.records(cache)), without_garbage(snapshot(cache))
    return Raised(outcome, runs.run(call_of(runs), model=model), recording, held, _told(call))


def _told(call: Call) -> dict[str, int]:
    """How often each hook that counts was called."""
    found: dict[str, int] = {}
    for hook in (*call.processors, *call.criteria, call.streamer):
        if isinstance(hook, StatefulProcessor | CountingCriterion | RaisingStreamer):
            found[f"calls of the {type(hook).__name__}"] = hook.calls.count
        if isinstance(hook, RaisingStreamer):
            found["ends of the RaisingStreamer"] = hook.ends
    return found


def left_by_the_hook(late: Raised, at_once: Raised, streamer: bool) -> Comparison:
    """What hooks were told, the generator, and the caller's cache; a streamer is called one step later."""
    for name, times in at_once.told.items():
        if late.told[name] != times and not (streamer and "Streamer" not in name and late.told[name] == times + 1):
            return Comparison.of(Difference("length", name, f"{times}", f"{late.told[name]}"))
    if streamer:
        return Comparison()
    its, wanted = (
        {"rng": one.outcome.rng_after} | {f"left{path}": leaf for path, leaf in one.cache.items()}
        for one in (late, at_once)
    )
    return compare_exactly(its, wanted, unnumbered)
