"""What placing, and decoding on a placed model, leave as it was: the caller's own, torch's state, and the weights."""

from __future__ import annotations

from pathlib import Path

from conformance.checks.placement import PLACEMENT
from conformance.placing.caches import elsewhere, returned_cache, runs_on_an_accelerator
from conformance.placing.guards import can_run, cannot_be_had, has_decoded, of
from conformance.placing.leaving import DRAWN, changed_files, contents
from conformance.placing.on_planned_map import on_its_own_map
from conformance.placing.whereabouts import moved
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(PLACEMENT, bitwise=True)
@guarded(cannot_be_had)
@applies("a part is left on meta on purpose", lambda runs: runs.case.plan.stranded is None)
def placing_changes_nothing_given(runs: Runs) -> Comparison:
    """Planning and placing leave the caller's map and limits as they were given, and the checkpoint's files.

    A model that is placed and decodes may read what is offloaded from the checkpoint, and writes nothing to it.
    """
    own = of(runs)
    _ = own.planned, own.placed
    if can_run(runs) is None:
        _ = own.placed_outcome
    for argument, how in own.left.given.items():
        return Comparison.of(Difference("changed", argument, "as it was given", how))
    if isinstance(own.checkpoint, Path):
        for file, how in changed_files(own.stored, contents(own.checkpoint)).items():
            return Comparison.of(Difference("changed", "checkpoint", "as it was saved", f"{file} {how}"))
    return Comparison()


@check(PLACEMENT, bitwise=True)
@guarded(cannot_be_had)
@applies("a part is left on meta on purpose", lambda runs: runs.case.plan.stranded is None)
def placing_leaves_torch_alone(runs: Runs) -> Comparison:
    """Planning and placing leave torch's switches as they were, and seed its generator by no means.

    Numbers may be drawn on the way, for what is made before it is loaded: named and counted where loading without a
    placement draws none.
    """
    own = of(runs)
    _ = own.planned, own.placed
    found = Comparison()
    for what, how in own.left.torch.items():
        if what != DRAWN:
            return Comparison.of(Difference("changed", what, "as before placing", how))
        found.allowed.append("random numbers: drawn for what is loaded on a placement, and not without one")
    return found


@check(
    PLACEMENT, stands_on=["planning-never-crashes", "nothing-stranded-on-meta"], bitwise=True, excuses=on_its_own_map
)
@guarded(has_decoded)
def decoding_moves_no_weight(runs: Runs) -> Comparison:
    """After a decoding, every weight is where it was when the model was placed: what was brought is away again.

    What a hook replaces by a copy of its own need not be held meanwhile, and may be away afterwards.
    """
    own = of(runs)
    for name, how in moved(own.placed.where, own.placed_outcome.extra["where"]).items():
        return Comparison.of(Difference("changed", "places", "as before decoding", f"{name}: {how}"))
    return Comparison()


@check(
    PLACEMENT, stands_on=["planning-never-crashes", "nothing-stranded-on-meta"], bitwise=True, excuses=on_its_own_map
)
@guarded(has_decoded)
@applies("all layers run on the CPU", lambda runs: runs_on_an_accelerator(of(runs)))
@applies("no cache is returned", lambda runs: returned_cache(of(runs)) is not None)
def cache_is_where_its_layer_runs(runs: Runs) -> Comparison:
    """Each layer of a returned cache is on the device where that layer of the model runs."""
    own = of(runs)
    found = elsewhere(own.placed.model, own.placed.where, returned_cache(own))
    if found is None:
        return Comparison()
    return Comparison.of(Difference("changed", "cache", "each layer where it runs", found))
