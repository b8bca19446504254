"""Deferred stopping leaves no trace: a call that stops one step late gives what one that stops at once gives."""

from __future__ import annotations

from dataclasses import replace

from conformance.cache_contents import without_garbage
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.registry import applies, check, family
from conformance.runs import Runs
from conformance.simulation.hooks import HookRaised
from conformance.stopping.errors import (
    IN_THE_STEP_TOO_MANY,
    after_error,
    in_the_step_too_many,
    left_by_the_call,
    left_by_the_hook,
    next_call,
)
from conformance.stopping.pairs import (
    ATTENTIONS,
    HIDDEN_STATES,
    MAY_DEFER,
    NOT_GONE_ON_FROM,
    SAMPLED,
    SEVERAL_RETURNED,
    Stopped,
    continued,
    lacks,
    runs_of,
    second_calls,
)
from conformance.stopping.same import same_outcome
from conformance.streams import streamed_step_by_step
from conformance.verdicts import STEP_TOO_MANY, Comparison, Difference

STOPPING = family(
    "stopping",
    floors={
        "undone: 1, the cache outlives": 0.3,
        "deferred": 0.5,
        "streamer: on": 0.2,
        "rows: several": 0.2,
        SAMPLED: 0.08,
        SEVERAL_RETURNED: 0.02,
        HIDDEN_STATES: 0.02,
        ATTENTIONS: 0.01,
    },
    reachable=(
        "cache: filled",
        "cache: fresh",
        "cache: static",
        "lag: as late as allowed",
        "lag: one step",
        IN_THE_STEP_TOO_MANY,
        "not deferred",
        "sampling: on",
        "stop: eos first",
        "stop: eos last",
        "stop: eos middle",
        "stop: length",
        "stop: rows differ",
        "undone: 0",
        "undone: 1, no cache outlives",
    ),
    promised={"deferred": MAY_DEFER},
)
MATCHES = "deferred-stop-matches-immediate"
RAISES = "the deferred run raises, of which the check of the outcome tells"
both_run = applies("stopping at once raises too", lambda runs: runs_of(runs).immediate.crash is None)
has_it = applies("the release has no deferred stopping", lambda runs: lacks(runs) is None)


@check(STOPPING, script="deferred", compares="itself", bitwise=True)
@has_it
@both_run
def deferred_stop_matches_immediate(runs: Runs) -> Comparison:
    """Stopping one step late gives bitwise what stopping at once gives: every field of the outcome.

    Nor may the step too many raise, where stopping at once would not have taken it. Where a step was undone, hooks of
    the caller's may have been called once more, and the installed release may have drawn one random number more: both
    are allowed, named and counted.
    """
    both = runs_of(runs)
    if both.deferred.crash:
        crashed = crash_difference(both.deferred.crash, "stopping at once works")
        if both.undone != 1 or both.seen.finished == both.seen.forwards:
            return crashed  # not of the step too many, but of what is done about it
        return Comparison.of(replace(crashed.differences[0], field=STEP_TOO_MANY))
    most = 0 if both.immediate.steps == runs.case.settings.max_new_tokens else 1  # the host knows the length itself
    if not 0 <= both.undone <= most:
        return Comparison.of(Difference("length", "forwards", f"at most {most} more", f"{both.undone} more"))
    result = _calls_of_hooks(both) + same_outcome(runs, both.immediate, both.deferred, both.marks)
    if both.states_not_gone_on_from:
        result.allowed.append(NOT_GONE_ON_FROM)
    again = runs.case.plan.again and not result.differences
    return result + (_once_more(runs) if again else Comparison())


def _once_more(runs: Runs) -> Comparison:
    """A second call of the same on the same models: nothing of the first is left that it would read."""
    if runs_of(runs).states_not_gone_on_from:
        return Comparison()  # the model may begin with them, which `repeatable` tells
    at_once, late = second_calls(runs)
    if at_once.crash:
        return Comparison()  # another rung's matter
    found = (
        crash_difference(late.crash, "the second call that stops at once works")
        if late.crash
        else same_outcome(runs, at_once, late)
    )
    return Comparison.of(*(replace(one, where=f"second call, {one.where}") for one in found.differences))


def _calls_of_hooks(both: Stopped) -> Comparison:
    result = Comparison()
    for name, (at_once, late) in both.calls.items():
        if late not in (at_once, at_once + both.undone):
            wanted = f"{at_once} or {at_once + both.undone} calls"
            return Comparison.of(Difference("length", f"calls of the {name}", wanted, f"{late} calls"))
        if late != at_once:
            result.allowed.append(f"hooks: the caller's {name} has seen the undone step")
    return result


@check(STOPPING, stands_on=[MATCHES], script="deferred_streamed", compares="itself", bitwise=True)
@has_it
@applies("nothing is streamed", lambda runs: runs.case.plan.streamed)
@applies("stopping is not deferred here", lambda runs: runs_of(runs).seen.deferred)
@both_run
def deferred_stop_streams_each_token_once(runs: Runs) -> Comparison:
    """A streamer receives the prompt, then each token of the sequences once and in order, then `end` once.

    Also where tokens are streamed one step behind: the last one is not forgotten, and the one too many never seen.
    """
    outcome = runs_of(runs).deferred
    if outcome.crash or outcome.sequences is None:
        return Comparison(not_applicable=RAISES)
    found = streamed_step_by_step(outcome)
    if found.differences:
        return found
    both = runs_of(runs)
    kinds = [{str(call.dtype) for call in one.streamed} for one in (both.deferred, both.immediate)]
    if kinds[0] != kinds[1]:
        return Comparison.of(Difference("changed", "type of what is streamed", str(kinds[1]), str(kinds[0])))
    if both.holds_back > 1:
        return Comparison.of(Difference("length", "held back", "one step's tokens", f"those of {both.holds_back}"))
    return Comparison()


@check(STOPPING, stands_on=[MATCHES], script="deferred_left", compares="itself", bitwise=True)
@has_it
@applies("no cache outlives the call", lambda runs: runs_of(runs).outlives)
@both_run
def deferred_cache_continues_like_immediate(runs: Runs) -> Comparison:
    """The cache that is left, returned or the caller's own, is bitwise that of stopping at once.

    Its contents, its length, what it says of itself, and a second call that goes on from it. Past states are recorded
    neither during the prefill, where that would cost memory, nor after the call, unless the caller had it so.
    """
    both = runs_of(runs)
    if both.deferred.crash:
        return Comparison(not_applicable=RAISES)
    if both.recording_early:
        return Comparison.of(Difference("changed", "recording", "off during the prefill", "on"))
    if both.kept_too_long:
        more = f"more of {both.kept_too_long}"
        return Comparison.of(Difference("length", "recording", "one step's past states at a time", more))
    if both.own_at_once and not both.own_late:
        return Comparison.of(Difference("changed", "cache", "the caller's own, as stopping at once returns", "another"))
    if not both.left_at_once and not both.left_late:
        return Comparison(not_applicable="the loop returns no cache, and was given none")
    contents = compare_exactly(both.left_late, both.left_at_once, unnumbered)
    if contents.differences:
        return contents
    at_once, late = continued(runs)
    if at_once.crash:
        return Comparison()  # going on from it is another rung's matter
    if late.crash:
        return crash_difference(late.crash, "going on after stopping at once works")
    found = compare_exactly(without_garbage(late.fields()), without_garbage(at_once.fields()), unnumbered)
    return Comparison.of(*(replace(one, where=f"second call, {one.where}") for one in found.differences))


@check(STOPPING, stands_on=[MATCHES], script="deferred_waits", compares="itself", bitwise=True)
@has_it
@applies("the next step may have no place, so its own flag is waited for", lambda runs: not runs_of(runs).tight)
@applies("stopping is not deferred here", lambda runs: runs_of(runs).seen.deferred)
@both_run
def deferral_never_waits_for_its_own_step(runs: Runs) -> Comparison:
    """No forward begins after a wait for a copy of the step just issued, and no value is read to decide to stop.

    Of the values that the host takes from the device outside the model, stopping at once takes one a step to decide,
    and one to stream; deferral takes those away and adds none.
    """
    both = runs_of(runs)
    if both.deferred.crash:
        return Comparison(not_applicable=RAISES)
    waits = both.seen.own_step_waits
    if waits:
        return Comparison.of(Difference("length", "waits", "none for the step just issued", f"{waits}"))
    if both.reads_late > both.reads_allowed:
        wanted = f"at most {both.reads_allowed:g} in {both.seen.forwards} steps"
        return Comparison.of(Difference("length", "values read by the host", wanted, f"{both.reads_late}"))
    return Comparison()


@check(STOPPING, stands_on=[MATCHES], script="deferred_refused", compares="itself", bitwise=True)
@has_it
@applies("nothing here forbids to defer", lambda runs: bool(runs_of(runs).must_not_defer))
@both_run
def deferral_refuses_when_it_must(runs: Runs) -> Comparison:
    """Stopping is not deferred in the loop of an assistant; nor where a cache that outlives the call is to be put back.

    Unless it says that it can be put back, and shows in the model's outputs.
    """
    both = runs_of(runs)
    if both.deferred.crash:
        return Comparison(not_applicable=RAISES)
    if not both.seen.deferred:
        return Comparison()
    return Comparison.of(Difference("changed", "deferral", f"refused: {both.must_not_defer}", "deferred"))


@check(STOPPING, stands_on=[MATCHES], script="deferred_error", compares="itself", bitwise=True)
@has_it
@applies("no hook is told to raise", lambda runs: bool(runs.case.plan.raises))
@both_run
def no_trace_after_an_error(runs: Runs) -> Comparison:
    """A hook of the caller's that raises midway leaves nothing behind: its own exception comes out, and that is all.

    The caller's cache records past states only if it did before, configs, inputs and modules are as after stopping at
    once, and the next call on the same model gives what it gives on a new one.
    """
    at_once, late = after_error(runs)
    raised, its = at_once.outcome.crash, late.outcome.crash
    found = in_the_step_too_many(runs, at_once, late) if raised is None else Comparison()
    if found.not_applicable or found.differences:
        return found
    if raised is not None and (its is None or its.type != raised.type):
        return Comparison.of(Difference("crash", "error", str(raised), str(its)))
    before, after = (("off", "on")[recording] for recording in late.recording)
    if before != after:
        return Comparison.of(Difference("changed", "recording", f"{before}, as before", after))
    found += left_by_the_call(runs, late, at_once)
    if raised is not None and raised.type == HookRaised.__name__ and not found.differences:
        found += left_by_the_hook(late, at_once, runs.case.plan.raises == "streamer")
    return found if found.differences else found + next_call(runs, at_once, late)
