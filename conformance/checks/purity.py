"""A call leaves nothing behind but what it returns, and says the same when it is made again."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from conformance import upstream
from conformance.architectures.own_generate import recipes
from conformance.architectures.ropes import rope_of
from conformance.build import DTYPES
from conformance.building import own_generate
from conformance.call import Call
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.drafting.processors import Raises
from conformance.errors import NotBuildable
from conformance.outcome import Outcome
from conformance.plans.purity import PurityPlan
from conformance.registry import applies, check, family, guarded
from conformance.runs import Runs
from conformance.snapshots import Flat, changes, kept_on_purpose, snapshot
from conformance.subjects.installed import Installed
from conformance.subjects.own_generate import OwnGenerate
from conformance.telling import told
from conformance.verdicts import Comparison, Difference

WAYS = ("keywords", "by_model", "encoded", "seen", "unmasked", "positions", "criterion", "quantized", "static")
TOLD = tuple(f"told: {way}" for way in WAYS)
PURITY = family(
    "purity",
    floors={"rows: several": 0.2, "rows: padded": 0.1, "stop: eos middle": 0.1, "sampling: on": 0.05},
    reachable=(
        "images: in the prompt",
        "stop: eos first",
        "stop: eos last",
        "stop: rows differ",
        "decodes by itself",
        *TOLD,
    ),
)


def _kept(runs: Runs) -> tuple[Any, Call]:
    """One model and one call, to be used more than once."""
    return runs.once("kept", lambda: _made(runs))


def _made(runs: Runs) -> tuple[Any, Call]:
    """A new model, and the call as the plan has it."""
    plan = plan_of(runs)
    if plan.by_itself:
        return _own_model(runs), _own_call(runs, runs.case.settings.sample_seed)
    return _told(runs, plan)


def _told(runs: Runs, plan: PurityPlan) -> tuple[Any, Call]:
    model = runs.scenario.model()
    return model, told(runs.call(), plan, model, runs.capabilities.accepts_position_ids)


def plainly_told(runs: Runs) -> Outcome:
    """The same request on a new model, told by a config, ids and a mask."""
    model, call = _told(runs, plan_of(runs).plainly())
    return runs.once("plainly told", lambda: _run(runs, call, model=model))


def _own_model(runs: Runs) -> Any:
    spec = runs.case.model
    return own_generate.make(plan_of(runs).by_itself, spec, DTYPES[spec.dtype])


def _own_call(runs: Runs, seed: int) -> Call:
    """The call of a model that decodes by itself, the numbers in it drawn from a seed."""
    name, dtype = plan_of(runs).by_itself, DTYPES[runs.case.model.dtype]
    tensors = own_generate.arguments(name, runs.case.prompt.rows[0], seed, dtype)
    return Call(tensors, None, extras=recipes()[name].keywords)


def cannot_be_had(runs: Runs) -> str | None:
    """Why a model that decodes by itself cannot be asked; None where it can, or where the case has none."""
    if not plan_of(runs).by_itself:
        return None
    if runs.subject.name != Installed.name:
        return "the model decodes by itself, whatever the subject is"
    try:
        runs.once("own model", lambda: _own_model(runs))
    except NotBuildable as error:
        return str(error)
    return None


def plan_of(runs: Runs) -> PurityPlan:
    """The case's plan; a case of another family, for which this is a lower rung, has the plain call."""
    return runs.case.plan if isinstance(runs.case.plan, PurityPlan) else PurityPlan()


def afresh(runs: Runs) -> Outcome:
    """The case's call, told as the plan has it, on a new model."""
    if plan_of(runs) == PurityPlan():
        return runs.batch
    model, call = _made(runs)
    return runs.once("afresh", lambda: _run(runs, call, model=model))


def _run(runs: Runs, call: Call, **options: Any) -> Outcome:
    if plan_of(runs).by_itself:
        return runs.run(call, subject=OwnGenerate(), **{**options, "stream": False})
    with upstream.quantized_stand_in() if plan_of(runs).quantized else nullcontext():
        return runs.run(call, **options)


def watched(runs: Runs) -> Outcome:
    """The case's call with a streamer, and with a look at everything that it could change."""
    model, call = _kept(runs)
    return runs.once("watched", lambda: _run(runs, call, model=model, stream=True, watch=True))


def watched_again(runs: Runs) -> Outcome:
    """The same call a second time on the same objects, after one with other inputs."""

    def make() -> Outcome:
        other_call(runs)
        model, call = _kept(runs)
        ended_by_an_error(runs)
        return _run(runs, call, model=model, stream=True)

    return runs.once("watched again", make)


def other_call(runs: Runs) -> tuple[Outcome, dict[str, str]]:
    """A call on other inputs, on the same model, and what it changed in what the first had returned: path → how."""

    def make() -> tuple[Outcome, dict[str, str]]:
        before, (model, _) = _returned(watched(runs)), _kept(runs)
        outcome = _run(runs, _other_inputs(runs), model=model)
        return outcome, changes(before, _returned(watched(runs)))

    return runs.once("other call", make)


def _returned(outcome: Outcome) -> Flat:
    """All that the caller got, the cache under one name whatever the release calls it."""
    output = outcome.returned
    fields, cache = (output, upstream.cache_of(output)) if isinstance(output, dict) else ({"sequences": output}, None)
    return snapshot({**{n: field for n, field in fields.items() if field is not cache}, "cache": cache}, "returned")


def _other_inputs(runs: Runs) -> Call:
    """The rows in another order, and the tokens of each; with the cache that the plan asks for.

    Where the prompt holds images, text alone: what was seen by the call before must not be seen again.
    """
    if plan_of(runs).by_itself:
        return _own_call(runs, runs.case.settings.sample_seed + 1)
    inputs = runs.call().inputs
    if runs.case.prompt.images:
        ids = torch.arange(1, 4).expand(len(runs.rows), -1)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    turned = {name: tensor.flip(0, 1) for name, tensor in inputs.items()}
    model, config = _kept(runs)[0], runs.scenario.generation_config(max_new_tokens=1)
    return told(Call(turned, config), PurityPlan(static=plan_of(runs).static), model)


def ended_by_an_error(runs: Runs) -> Outcome | None:
    """The same call on the same objects, ended by a processor of the caller's that raises; None where none does."""
    calls = plan_of(runs).raises
    if not calls or plan_of(runs).by_itself:
        return None
    model, call = _kept(runs)
    raising = call.replace(processors=(Raises(calls - 1),))
    return runs.once("ended by an error", lambda: _run(runs, raising, model=model, watch=True))


@check(PURITY, script="repeatable", bitwise=True)
@guarded(cannot_be_had)
@applies("the first call raises", lambda runs: watched(runs).crash is None)
def repeatable(runs: Runs) -> Comparison:
    """The same call again on the same objects gives bitwise the same outcome, and so does a new model."""
    for name, again in (("the second call", watched_again(runs)), ("the call on a new model", afresh(runs))):
        if again.crash:
            return crash_difference(again.crash, "the first call works")
        found = compare_exactly(again.fields(), watched(runs).fields(), unnumbered)
        if found.differences:
            return Comparison.of(replace(found.differences[0], where=name))
    return Comparison()


@check(PURITY, script="purity", bitwise=True)
@guarded(cannot_be_had)
def nothing_of_the_callers_changed(runs: Runs) -> Comparison:
    """Input tensors, the generation config or keywords passed, and both configs of the model are as before the call.

    Attributes of the model's modules count too: state left there reaches the next call. Those that a model
    keeps on purpose are allowed and named. A call that a processor of the caller's ends by an error counts as well.
    One that raises by itself, and changed nothing, has shown nothing: it may not have come to where it would.
    """
    result = _unchanged(runs, watched(runs), "after the call")
    if watched(runs).crash and not result.differences:
        return Comparison(not_applicable=f"the call raises: {watched(runs).crash}"[:200])
    failed = None if result.differences else ended_by_an_error(runs)
    return result if failed is None else result + _unchanged(runs, failed, "after an error")


def _unchanged(runs: Runs, outcome: Outcome, when: str) -> Comparison:
    for path, how in outcome.changed.items():
        return Comparison.of(Difference("changed", unnumbered(path), "as before the call", f"{path}: {how}", when))
    result = Comparison()
    owner, rope = plan_of(runs).by_itself or runs.scenario.architecture.model_type, rope_of(runs.case.model.config)
    for path, how in outcome.module_changes.items():
        attribute = path.rsplit(".", 1)[-1]
        reason = kept_on_purpose(owner, path, rope)
        if reason is not None:
            result.allowed.append(f"{attribute}: {reason}")
        else:
            result += Comparison.of(
                Difference("changed", f"module attribute {attribute}", "as before", f"{path}: {how}", when)
            )
    return result
