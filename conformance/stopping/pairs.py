"""The runs of the `stopping` family: the same call stopped at once and one step late, on a late device."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from conformance import events, upstream
from conformance.cache_contents import without_garbage
from conformance.call import Call
from conformance.model_state import model_state, states, traces
from conformance.outcome import Outcome
from conformance.reference.deferrable import longest
from conformance.runs import Runs
from conformance.simulation.deferral import Deferral, Seen
from conformance.simulation.hooks import CountingCriterion, StatefulProcessor
from conformance.snapshots import Flat, snapshot
from conformance.stopping.calls import PLAIN, call_of, following
from conformance.subjects.installed import Installed

LAGS = (0, 1, None)  # of the plan: forwards until a copy lands by itself
AT_ONCE, LATE = "decode", "stopping"
MAY_DEFER = "deferral: nothing forbids it"
NOT_GONE_ON_FROM = "states: those on the model's modules are of the undone step, and nothing goes on from them"
SAMPLED, SEVERAL_RETURNED = "undone: 1, sampled", "undone: 1, several returned"
ATTENTIONS, HIDDEN_STATES = "undone: 1, attentions asked for", "undone: 1, hidden states asked for"


@dataclass
class Stopped:
    """Both runs of a case, and what is told from comparing them.

    outlives: whether a cache is left; left_at_once, left_late: what it holds; calls: name of a hook → how often it was
    called in both; tight: the deferred run may have to wait since another step has no place; must_not_defer: why;
    models: those that they ran on; traces: what the deferred run alone left in its, path → how; states: paths of
    tensors and numbers that both models hold and that are no weights; own_at_once, own_late: whether what is returned
    is the caller's own cache.
    """

    immediate: Outcome
    deferred: Outcome
    outlives: bool
    left_at_once: Flat = field(default_factory=dict)
    left_late: Flat = field(default_factory=dict)
    calls: dict[str, tuple[int, int]] = field(default_factory=dict)
    tight: bool = False
    must_not_defer: str = ""
    models: tuple[Any, Any] = (None, None)
    traces: dict[str, str] = field(default_factory=dict)
    states: set[str] = field(default_factory=set)
    own_at_once: bool = False
    own_late: bool = False

    @property
    def seen(self) -> Seen:
        """What was seen of the deferred run."""
        return seen_of(self.deferred)

    @property
    def undone(self) -> int:
        """Forwards of the deferred run beyond those of the immediate one."""
        return self.seen.forwards - seen_of(self.immediate).forwards

    @property
    def recording_early(self) -> bool:
        """Whether the deferred run alone recorded past states during the prefill."""
        return self.seen.recording_early and not seen_of(self.immediate).recording_early

    @property
    def holds_back(self) -> int:
        """The most calls of `put` that the deferred run was behind the immediate one when a forward began."""
        behind = zip(seen_of(self.immediate).streamed, self.seen.streamed, strict=False)
        return max((once - late for once, late in behind), default=0)

    @property
    def kept_too_long(self) -> str:
        """The first tensor of the cache that was more than one token larger than the immediate run's, or nothing."""
        for once, late in zip(seen_of(self.immediate).sizes, self.seen.sizes, strict=False):
            for path in sorted(once.keys() & late.keys()):
                grown = zip(once[path], late[path], strict=False)
                if any(size > own + 1 for own, size in grown):
                    return path
        return ""

    @property
    def marks(self) -> dict[str, str]:
        """What the deferred run alone changed: of the caller's configs, inputs and keywords, and of the model."""
        traces = {path: how for path, how in self.traces.items() if path not in self.states_not_gone_on_from}
        return traces | changed_by_one(self.deferred, self.immediate)

    @property
    def states_not_gone_on_from(self) -> set[str]:
        """Differing states that the model keeps on its modules, where no cache outlives the call.

        Stopping at once changes them too, they are one step further, and nothing can go on from them: the next call
        starts them anew. Where a cache is left, a call that goes on would go on from the wrong states.
        """
        if self.outlives or not self.undone:
            return set()
        return {path for path in self.traces if path in self.states and path in self.immediate.module_changes}

    @property
    def reads_late(self) -> int:
        """Values that the deferred run's host took from the device outside the model."""
        return self.seen.reads - self.seen.reads_in_forwards

    @property
    def reads_allowed(self) -> float:
        """How many those may be: what stopping at once takes beside one a step to decide and one to stream.

        For an undone step as many more as it takes for a step after the prefill; where it has none, that is unknown.
        """
        seen = seen_of(self.immediate)
        streamed = max(0, len(self.immediate.streamed) - 1)
        others = max(0, seen.reads - seen.reads_in_forwards - seen.forwards - streamed)
        if not self.undone:
            return others
        return others + ceil(others / (seen.forwards - 1)) if seen.forwards > 1 else inf


def changed_by_one(late: Outcome, at_once: Outcome) -> dict[str, str]:
    """What of the caller's configs, inputs and keywords one run has changed otherwise than the other; path → how."""
    both = late.changed.keys() | at_once.changed.keys()
    found = {path: (at_once.changed.get(path), late.changed.get(path)) for path in both}
    return {path: late or f"not {once}, as stopping at once" for path, (once, late) in found.items() if once != late}


def probe_of(runs: Runs) -> Deferral:
    """What watches a run, on the late device of the plan."""
    return Deferral(LAGS[runs.case.plan.lag], runs.case.plan.polls)


def lacks(runs: Runs) -> str | None:
    """Why the subject has no deferred stopping; only the installed release may lack it."""
    return upstream.lacks(LATE) if runs.subject.name == Installed.name else None


def runs_of(runs: Runs) -> Stopped:
    """Both runs, made once for a case."""
    return runs.once("stopped", lambda: _stopped(runs))


def seen_of(outcome: Outcome) -> Seen:
    """What was seen of a run with the probe."""
    seen: Seen = outcome.extra[Deferral.name]
    return seen


def _stopped(runs: Runs) -> Stopped:
    at_once, late = call_of(runs), call_of(runs).replace(mechanism=LATE)
    probe, stream = probe_of(runs), runs.case.plan.streamed
    models = runs.scenario.model(), runs.scenario.model()
    immediate, deferred = (
        runs.run(call, model=model, stream=stream, watch=True, probes=[probe])
        for call, model in zip((at_once, late), models, strict=True)
    )
    outlives = not runs.case.plan.uncached and (
        upstream.cache_name(at_once.extras) is not None or not runs.case.plan.tensor_only
    )
    both = Stopped(
        immediate, deferred, outlives, _left(immediate, at_once), _left(deferred, late), _calls(at_once, late)
    )
    both.own_at_once, both.own_late = _returns_the_callers(immediate, at_once), _returns_the_callers(deferred, late)
    both.models = models
    if not immediate.crash and not deferred.crash:
        late_state, its_state = map(model_state, reversed(models))
        both.traces = traces(late_state, its_state, runs.scenario.architecture.model_type)
        both.states = states(late_state) & states(its_state)
    both.seen.deferred |= both.undone > 0  # also where nothing was copied: what is undone was one step too many
    both.must_not_defer = _reason_to_refuse(runs, both)
    both.tight = _tight(runs, both)
    _tell(runs, both)
    return both


def _calls(at_once: Call, late: Call) -> dict[str, tuple[int, int]]:
    hooks = {"processor": (at_once.processors, late.processors), "criterion": (at_once.criteria, late.criteria)}
    kinds = (StatefulProcessor, CountingCriterion)
    return {
        name: (one.calls.count, other.calls.count)
        for name, (ones, others) in hooks.items()
        for one, other in zip(ones, others, strict=True)
        if isinstance(one, kinds)
    }


def _left(outcome: Outcome, call: Call) -> Flat:
    """What the cache holds that is left after the call."""
    passed = upstream.cache_name(call.extras)
    return without_garbage(snapshot(call.extras[passed], "") if passed else outcome.cache)


def _returns_the_callers(outcome: Outcome, call: Call) -> bool:
    """Whether the cache that is returned is the very object that the caller passed."""
    passed = upstream.cache_name(call.extras)
    return passed is not None and upstream.cache_of(outcome.returned) is call.extras[passed]


def _reason_to_refuse(runs: Runs, both: Stopped) -> str:
    seen = both.seen
    if runs.case.plan.assistant:
        return "the loop is an assistant's"
    if not both.outlives or not seen.written:
        return ""
    if not seen.visible:
        return "the cache outlives the call and does not show in the model's outputs"
    return "" if seen.says else "the cache outlives the call and does not say that it can be put back"


def _tight(runs: Runs, both: Stopped) -> bool:
    """Whether a step was decided after which another may have no place, and which the length alone did not decide."""
    if both.immediate.sequences is None:
        return False
    limit = both.immediate.prompt_length + runs.case.settings.max_new_tokens
    room = longest(runs.scenario.pristine, both.seen.cache, 10**9)
    return min(both.immediate.sequences.shape[1], limit - 1) > room


def _may_defer(runs: Runs, both: Stopped) -> bool:
    """Whether nothing forbids or makes it needless to defer in this case."""
    plan, longer = runs.case.plan, runs.case.settings.max_new_tokens > 1  # else the host knows all from the start
    return longer and not (both.must_not_defer or both.tight or plan.pad_beyond)


def _tell(runs: Runs, both: Stopped) -> None:
    """Events and figures of the case."""
    if both.immediate.crash:
        return
    runs.events |= {MAY_DEFER} if _may_defer(runs, both) else set()
    if both.seen.deferred:
        runs.events.add("deferred")
    if both.deferred.crash:
        return
    runs.events |= events.of_outcome(runs.scenario, both.immediate)
    if not both.seen.deferred:
        runs.events.add("not deferred")
    undone = "undone: 1, the cache outlives" if both.outlives else "undone: 1, no cache outlives"
    runs.events.add(undone if both.undone else "undone: 0")
    runs.events |= _touched(runs) if both.undone else set()
    for name, outcome in (("immediate", both.immediate), ("deferred", both.deferred)):
        seen = seen_of(outcome)
        if name == "immediate" or seen.deferred:
            runs.figures[f"host_syncs_per_token, {name}"] = (seen.reads + seen.own_step_waits) / both.immediate.steps


def _touched(runs: Runs) -> set[str]:
    """What a step that was undone had touched, beside the cache."""
    settings, plan = runs.case.settings, runs.case.plan
    touched = {
        SAMPLED: settings.do_sample,
        SEVERAL_RETURNED: settings.copies > 1,
        ATTENTIONS: settings.output_attentions and not plan.tensor_only,
        HIDDEN_STATES: settings.output_hidden_states and not plan.tensor_only,
    }
    return {event for event, holds in touched.items() if holds}


# Going on, and a second call of the same


def continued(runs: Runs) -> tuple[Outcome, Outcome]:
    """A second call that goes on from what either run left, stopping at once: immediate, deferred."""
    return runs.once("continued", lambda: _continued(runs))


def _continued(runs: Runs) -> tuple[Outcome, Outcome]:
    both = runs_of(runs)
    at_once, late = (_go_on(runs, outcome) for outcome in (both.immediate, both.deferred))
    return at_once, late


def _go_on(runs: Runs, outcome: Outcome) -> Outcome:
    assert outcome.sequences is not None
    inputs = following(call_of(runs).inputs, outcome.sequences, runs.scenario.encoder_decoder)
    name = upstream.cache_argument(runs.scenario.pristine)
    call = Call(
        inputs, runs.scenario.generation_config(**PLAIN, max_new_tokens=2), extras={name: seen_of(outcome).cache}
    )
    return runs.run(call)


def second_calls(runs: Runs) -> tuple[Outcome, Outcome]:
    """The same call once more, on the model that each run has used, stopped as before: immediate, deferred."""
    return runs.once("second calls", lambda: _second_calls(runs))


def _second_calls(runs: Runs) -> tuple[Outcome, Outcome]:
    at_once, late = (
        runs.run(call_of(runs).replace(mechanism=mechanism), model=model, probes=[probe_of(runs)])
        for mechanism, model in zip((AT_ONCE, LATE), runs_of(runs).models, strict=True)
    )
    return at_once, late
