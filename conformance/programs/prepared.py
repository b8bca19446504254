"""The runs of a case of the `rollback` family: its cache prepared as `generate` prepares it, and its program run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from conformance import upstream
from conformance.call import Call
from conformance.case import Settings
from conformance.clock import MODEL_CODE
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.plans.rollback import MADE, STATIC, RollbackPlan
from conformance.plans.rollback_programs import Op
from conformance.programs import caches
from conformance.programs.interpreter import Interpreter
from conformance.programs.machine import Machine
from conformance.programs.steps import Step, refuses
from conformance.programs.truths import Truths, Unusable
from conformance.runs import Runs
from conformance.subjects.installed import Installed

# The modules of the library in which `generate` itself refuses what it is asked for.
REFUSING = ("utils.", "candidate_generator.", "configuration_utils.")
T = TypeVar("T")


def plan_of(runs: Runs) -> RollbackPlan:
    """The case's plan; another family's case has the plainest."""
    plan = runs.case.plan
    return plan if isinstance(plan, RollbackPlan) else RollbackPlan()


def settings_of(runs: Runs) -> dict[str, Any]:
    """The changes to the generation config that ask for the plan's class of cache."""
    chosen: dict[str, Any] = {}
    if plan_of(runs).cache in STATIC:
        chosen |= upstream.static_cache_settings()
    return chosen


def plain_call(runs: Runs, rows: Sequence[int] | None = None, **config: Any) -> Call:
    """The call on these rows that is about the cache alone: greedy, and nothing but the limit ends it.

    Where the case's settings have processors and criteria, they are left out: scores and lengths would tell of them.
    """
    case = runs.case
    plain = case.replace(settings=Settings(max_new_tokens=case.settings.max_new_tokens))
    return runs.scenario.of(plain).call(rows, **config)


def with_cache(runs: Runs, model: Any, call: Call) -> Call:
    """The call with the cache that the caller passes: of the plan's class, or the subject's own if it has one.

    A subject's own caches are what its method `new_cache(model, call)` gives for a call; None leaves it to `generate`.
    """
    choice, own = plan_of(runs).cache, getattr(runs.subject, "new_cache", None)
    given: Any = None
    if choice in MADE:
        given = getattr(caches, choice)(runs.scenario.config)
    elif own:
        given = own(model, call)
    if given is None:
        return call
    call.generation_config.cache_implementation = None  # `generate` takes a cache or the name of one
    return call.replace(extras={**call.extras, upstream.cache_argument(model): given})


@dataclass(frozen=True)
class Raised:
    """What a call of `generate` raised, and whether that was a refusal: raised by name, and by `generate` itself."""

    crash: Crash
    refusal: bool


def generated(runs: Runs, rows: Sequence[int] | None, config: Mapping[str, Any], extras: Mapping[str, Any]) -> Any:
    """What `generate` returns for these rows with the plan's class of cache, on a new model; or what it raised.

    Beams and assistants are the library's own whatever is tested: the subject's part is the cache.
    """
    model = runs.scenario.model()
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            call = with_cache(runs, model, plain_call(runs, rows, **{**settings_of(runs), **config}))
            return Installed().generate(model, call.replace(extras={**call.extras, **extras}))
    except Exception as error:  # noqa: BLE001 - whatever a subject raises is its outcome
        crash = Crash.of(error)
        return Raised(crash, refuses(error) and crash.raised_in.startswith(REFUSING))


def prepared(runs: Runs, model: Any, count: int, rows: Sequence[int] | None = None) -> upstream.Handed:
    """What `generate` prepares for these rows of the prompt (None: all) and so many new tokens."""
    call = plain_call(runs, rows, max_new_tokens=count, **settings_of(runs))
    return upstream.handed_to_loop(model, with_cache(runs, model, call).arguments())


def truths_of(runs: Runs, more: int = 0) -> Truths:
    """The true caches of the plan's class for the case's prompt, shared by all that ask. Raises Unusable.

    more: how many tokens longer than the case's program those are that they have to hold.
    """

    def make() -> Truths | Unusable:
        model = runs.shareable_model()
        try:
            with torch.no_grad(), MODEL_CODE.running(), time_limit():
                return Truths(runs, model, prepared(runs, model, plan_of(runs).room + more))
        except Exception as error:  # noqa: BLE001 - the release may raise anything
            return Unusable(error)

    return _or_raised(runs.once(("rollback truths", more if plan_of(runs).cache in STATIC else 0), make))


def _or_raised(made: T | Unusable) -> T:
    if isinstance(made, Unusable):
        raise made
    return made


def interpreter(runs: Runs, more: int = 0, *, strict: bool = False) -> Interpreter:
    """An interpreter of programs, each on a new empty cache, `more` tokens longer than the case's. Raises Unusable."""
    truths, early = truths_of(runs, more), plan_of(runs).cache == "early"
    truths = truths.strictly() if strict else truths

    def start() -> Machine:
        machine = truths.empty()
        if early:
            with torch.no_grad(), MODEL_CODE.running(), time_limit():
                _initialize(machine, truths.of((), machine.sources)[0])
        return machine

    return Interpreter(truths, start, plain=not early)


def _initialize(machine: Machine, filled: Machine) -> None:
    try:
        caches.initialize_early(machine.cache, filled.cache, len(machine.sources))
    except Exception as error:
        raise Unusable(error, "initialised early: ") from error


def run(found: Interpreter, program: Iterable[Op]) -> list[Step]:
    """The steps of a program. Raises Unusable."""
    with torch.no_grad(), MODEL_CODE.running(), time_limit():
        return found.run(program)


def steps_of(runs: Runs) -> list[Step]:
    """The steps of the case's own program, run once. Raises Unusable."""

    def make() -> list[Step] | Unusable:
        try:
            found = interpreter(runs)
            steps = run(found, plan_of(runs).program)
        except Unusable as error:
            return error
        runs.events |= {f"done: {step.op.op}" for step in steps}
        runs.events |= {"crop: refused" for step in steps if step.refusal and step.op.op == "crop"}
        return steps

    return _or_raised(runs.once("rollback steps", make))
