"""A model and its checkpoint: loaded in every form, placed with the same weights, and saved where it came from."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.placement import PLACEMENT
from conformance.compare import crash_difference
from conformance.placing.comparing import compare_calls, other_weights
from conformance.placing.devices import bound_of
from conformance.placing.guards import (
    can_run,
    can_run_in_few_digits,
    described,
    draws_apart,
    is_whole,
    loads_a_checkpoint,
    of,
    reads_nothing_on_meta,
)
from conformance.placing.loaded import not_as_saved, running_weights
from conformance.placing.on_planned_map import on_its_own_map
from conformance.placing.world import World
from conformance.plans.placement import PlacementPlan
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

MATCHES = "placed-matches-unplaced"


@check(PLACEMENT, bitwise=True, script="loaded")
@guarded(loads_a_checkpoint)
def checkpoint_loads_as_saved(runs: Runs) -> Comparison:
    """What is loaded without a placement has the weights that were saved, whatever form the checkpoint has.

    One file or several, torch's own format, a tied weight under its source's name, its targets' names or all of them;
    and what was tied is one again. In another dtype the values are rounded to it.
    """
    world = described(runs)
    assert isinstance(world, World)
    if world.unplaced.crash is not None:
        return crash_difference(world.unplaced.crash, "what was saved can be loaded")
    if wrong := not_as_saved(world.base, world.unplaced.model):
        return Comparison.of(Difference("changed", "loaded weights", "as they were saved", wrong))
    for group, where in world.unplaced.report.split.items():
        return Comparison.of(Difference("changed", "tied group", "one weight", f"{', '.join(group)}: {where}"))
    return Comparison()


@check(
    PLACEMENT,
    stands_on=["checkpoint-loads-as-saved", "planning-never-crashes", "nothing-stranded-on-meta"],
    bitwise=True,
    script="weighed",
    excuses=on_its_own_map,
)
@guarded(is_whole)
def placed_weights_are_the_same(runs: Runs) -> Comparison:
    """Each weight of a placed model, there or as its hook brings it, has the undispatched one's values and dtype.

    So have the buffers that are not saved, as they were when it was placed.
    """
    own = of(runs)
    with own.present():
        wrong = other_weights(running_weights(own.unplaced.model), running_weights(own.placed.model))
    if wrong:
        return Comparison.of(Difference("changed", "weights", "as undispatched", wrong))
    wrong = other_weights(own.unplaced.buffers, own.placed.buffers)
    return Comparison.of(Difference("changed", "buffers", "as undispatched", wrong)) if wrong else Comparison()


@check(PLACEMENT, stands_on=["placed-weights-are-the-same", "no-op-reads-meta"], bitwise=True, excuses=on_its_own_map)
@guarded(can_run_in_few_digits)
@guarded(reads_nothing_on_meta)
@guarded(draws_apart)
def placed_matches_in_few_digits(runs: Runs) -> Comparison:
    """Loaded in float16 or bfloat16, a placed model decodes bitwise as the same model does undispatched.

    That one is wholly on one device of the kind that the placed one runs on: both run the same kernels on the same
    numbers, so that rounding is no excuse.
    """
    own = of(runs)
    if own.placed_outcome.crash is not None:
        found = crash_difference(own.placed_outcome.crash, "the undispatched model works")
        return replace(found, blocked_by=MATCHES if _raises_in_its_own_dtype(runs) else "")
    if own.alone_outcome.crash is not None:
        return Comparison(not_applicable="the undispatched model raises on an accelerator")
    return compare_calls(own.placed_outcome, own.alone_outcome, 0.0)


def _raises_in_its_own_dtype(runs: Runs) -> bool:
    """Whether the same placed model raises in the dtype that it has, too: then digits have no part in it."""
    plan: PlacementPlan = runs.case.plan
    whole = Runs(runs.case.replace(plan=plan.replace(loaded_as="")), runs.subject)
    return can_run(whole) is None and of(whole).placed_outcome.crash is not None


@check(PLACEMENT, stands_on=["save-and-reload-keeps-ties", "placed-matches-unplaced"], excuses=on_its_own_map)
@guarded(loads_a_checkpoint)
@applies("it is not saved where it was loaded from", lambda runs: bool(runs.case.plan.saved_over))
@guarded(can_run)
@guarded(reads_nothing_on_meta)
@guarded(draws_apart)
def saving_over_keeps_the_checkpoint(runs: Runs) -> Comparison:
    """A placed model, saved where it was loaded from, leaves a checkpoint of its weights, and decodes as before.

    What is offloaded is read from that checkpoint when it is needed: it is not to be lost while it is replaced. One
    weight was changed, as training does, so that what loads is what was saved.
    """
    own = of(runs)
    found = own.saved_over
    if found.again.crash is not None:
        return crash_difference(found.again.crash, "saved elsewhere, it is saved and loaded")
    if wrong := other_weights(found.weights, running_weights(found.again.model)):
        return Comparison.of(Difference("changed", "weights", "as they were saved", wrong))
    if found.before.crash is not None:
        return Comparison()
    if found.after.crash is not None:
        return crash_difference(found.after.crash, "it decodes before it is saved")
    return compare_calls(found.after, found.before, bound_of(runs.case.plan, runs.bound))
