"""What a hook of the caller's that raised has left behind, stopping at once and one step late."""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance import upstream
from conformance.cache_contents import without_garbage
from conformance.call import Call
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.model_state import model_state, states, traces
from conformance.outcome import Outcome
from conformance.runs import Runs
from conformance.simulation.hooks import CountingCriterion, HookRaised, RaisingStreamer, StatefulProcessor
from conformance.snapshots import Flat, snapshot
from conformance.stopping.calls import call_of
from conformance.stopping.pairs import AT_ONCE, LATE, NOT_GONE_ON_FROM, changed_by_one, probe_of, runs_of
from conformance.stopping.same import left_alone, same_outcome
from conformance.verdicts import STEP_TOO_MANY, Comparison, Difference

IN_THE_STEP_TOO_MANY = "raises: in the step too many"


@dataclass
class Raised:
    """One call in which a hook raised, and the call after it on the same model, in which none does.

    following: stopped at once too, or as the one before where the plan says so. recording: whether the caller's cache
    recorded past states before and after; cache: what that cache holds; told: what hooks of the caller's were told,
    by name; model: what the model held between the calls.
    """

    outcome: Outcome
    following: Outcome
    recording: tuple[bool, bool]
    cache: Flat
    told: dict[str, int]
    model: Flat


def after_error(runs: Runs) -> tuple[Raised, Raised]:
    """The call with a hook that raises, each on a model of its own: at once, late."""
    return runs.once("after error", lambda: (_raised(runs, AT_ONCE), _raised(runs, LATE)))


def _raised(runs: Runs, mechanism: str) -> Raised:
    call, model = call_of(runs, raising_call(runs)).replace(mechanism=mechanism), runs.scenario.model()
    name = upstream.cache_name(call.extras)
    cache = call.extras[name] if name else None
    before = upstream.records(cache)
    outcome = runs.run(call, model=model, watch=True, probes=[probe_of(runs)])
    recording, held = (before, upstream.records(cache)), without_garbage(snapshot(cache))
    traces = model_state(model)
    again = call_of(runs).replace(mechanism=mechanism if runs.case.plan.again else AT_ONCE)
    following = runs.run(again, model=model, probes=[probe_of(runs)])
    return Raised(outcome, following, recording, held, _told(call), traces)


def raising_call(runs: Runs) -> int:
    """In which of its calls the planned hook raises, the first being 1."""
    plan = runs.case.plan
    return int(plan.raises_at or runs_of(runs).calls[plan.raises][0] + 1)


def _told(call: Call) -> dict[str, int]:
    """How often each hook that counts was called."""
    found: dict[str, int] = {}
    for hook in (*call.processors, *call.criteria, call.streamer):
        if isinstance(hook, StatefulProcessor | CountingCriterion | RaisingStreamer):
            found[f"calls of the {type(hook).__name__}"] = hook.calls.count
        if isinstance(hook, RaisingStreamer):
            found["ends of the RaisingStreamer"] = hook.ends
    return found


def left_by_the_call(runs: Runs, late: Raised, at_once: Raised) -> Comparison:
    """What was changed of configs, inputs and keywords of the caller's, and what is left in the model.

    Where a streamer raised, which is called a step later, states that a model keeps on its modules are of one step
    more, as those in a cache are. So they are where no cache outlives the call: nothing goes on from them.
    """
    left = traces(late.model, at_once.model, runs.scenario.architecture.model_type)
    one_step_on = states_one_step_on(runs, late, at_once)
    rest = {path: how for path, how in left.items() if path not in one_step_on}
    found = left_alone(rest | changed_by_one(late.outcome, at_once.outcome))
    if one_step_on:
        found.allowed.append(NOT_GONE_ON_FROM)
    return found


def states_one_step_on(runs: Runs, late: Raised, at_once: Raised) -> set[str]:
    """Paths of the states on the model's modules that differ, and are allowed to be of one step more."""
    both = states(late.model) & states(at_once.model)
    if runs.case.plan.raises != "streamer":
        both = set() if runs_of(runs).outlives else both & at_once.outcome.module_changes.keys()
    return both & traces(late.model, at_once.model, runs.scenario.architecture.model_type).keys()


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


def in_the_step_too_many(runs: Runs, at_once: Raised, late: Raised) -> Comparison:
    """What is to be said where stopping at once does not call the hook so often, and it may have raised in the step
    too many: that it never was called so often, that its error came out, or what is left where it did not.
    """
    its, hook = late.outcome.crash, runs.case.plan.raises
    kind = {"processor": StatefulProcessor, "criterion": CountingCriterion, "streamer": RaisingStreamer}[hook]
    calls = f"calls of the {kind.__name__}"
    if its is None and late.told[calls] < raising_call(runs):
        return Comparison(not_applicable="the hook is not called so often")
    if its is not None and its.type != HookRaised.__name__:
        return Comparison(not_applicable="the deferred run raises, of which the check of the outcome tells")
    runs.events.add(IN_THE_STEP_TOO_MANY)
    if hook == "streamer":  # it is allowed no call more: no token of that step is streamed
        return Comparison.of(Difference("length", calls, f"{at_once.told[calls]}", f"{late.told[calls]}"))
    if its is not None:
        return Comparison.of(Difference("crash", STEP_TOO_MANY, "no exception, as stopping at once works", str(its)))
    found = compare_exactly(_all_of(late), _all_of(at_once), unnumbered)
    found.allowed.append(f"hooks: the caller's {hook} has raised in the undone step, which does not show")
    return found


def _all_of(run: Raised) -> Flat:
    return without_garbage(run.outcome.fields()) | {f"left{path}": leaf for path, leaf in run.cache.items()}


def next_call(runs: Runs, at_once: Raised, late: Raised) -> Comparison:
    """The plain call after the one in which a hook raised, on the same model.

    Not where that model is allowed to hold states of one step more: it may begin with them, which `repeatable` tells.
    """
    if at_once.following.crash or states_one_step_on(runs, late, at_once):
        return Comparison()  # another rung's matter
    if late.following.crash:
        return crash_difference(late.following.crash, "the call after an error with stopping at once works")
    found = same_outcome(runs, at_once.following, late.following)
    found.differences = [replace(one, where=f"next call, {one.where}") for one in found.differences]
    return found
