"""Where a model's weights are must not change what it says, whatever the device map, and must be told clearly.

undispatched model (loaded by the same loader without a map) → planned or refused → every weight reachable, tied
groups one, the map complete → no op reads what is not there → the same answer → saved and loaded again.
"""

from __future__ import annotations

import torch

from conformance import upstream
from conformance.compare import crash_difference
from conformance.placing.comparing import FROZEN, compare_calls, config_changes, frozen_by_placing
from conformance.placing.devices import bound_of
from conformance.placing.guards import (
    came_apart,
    can_run,
    cannot_be_had,
    draws_apart,
    has_decoded,
    is_whole,
    of,
    reads_nothing_on_meta,
    was_placed,
    watched,
)
from conformance.placing.on_planned_map import on_its_own_map
from conformance.placing.placed import Placed
from conformance.placing.stranding import stranded_outcome
from conformance.plans.placement_told import OFFLOADERS
from conformance.reference.tying import tied_groups
from conformance.registry import applies, check, family, guarded
from conformance.runs import Runs
from conformance.verdicts import WITHOUT_A_COPY, Comparison, Difference

PLACEMENT = family(
    "placement",
    floors={
        "held: offloaded": 0.1,
        "held: two places": 0.05,
        "brought back": 0.05,
        "a transfer": 0.03,
        "map: auto": 0.03,
        "limits: in words": 0.02,
        "loader: from_pretrained": 0.2,
        "checkpoint: in shards": 0.05,
        "checkpoint: loaded in another dtype": 0.03,
        "checkpoint: devices as objects": 0.03,
        "checkpoint: saved over itself": 0.03,
        "stored: under targets": 0.02,
        "stored: every name": 0.02,
        "stored: bin": 0.02,
    },
    reachable=(
        "held: sim",
        "damage: weights",
        "damage: buffer",
        "damage: untied",
        "damage: moved",
        "damage: unmapped",
        "damage: no copy",
        "model: tied blocks",
        "model: diffusion gemma",
        "decodes by itself",
        "mechanism: late stop",
        "mechanism: late stop, a step undone",
        "mechanism: crop",
        "mechanism: special tokens",
    ),
    isolated=True,
)


@check(PLACEMENT, bitwise=True, script="placing_crashes", excuses=on_its_own_map)
@guarded(cannot_be_had)
def planning_never_crashes(runs: Runs) -> Comparison:
    """Placing a model either works or is refused clearly, whatever the map and however little memory there is.

    A refusal is a ValueError, or an error of placing itself, that names the argument, module or device concerned.
    """
    met = [found for found in (of(runs).placed, of(runs).planned) if found.crash is not None]
    for found in met:
        if not found.refused:
            return crash_difference(found.crash, "the same model loads without a placement")
    return Comparison(allowed=[f"refused: {found.crash.message[:80]}" for found in met if found.crash])


@check(PLACEMENT, stands_on=["planning-never-crashes"], bitwise=True, script="stranded", excuses=on_its_own_map)
@guarded(was_placed)
def nothing_stranded_on_meta(runs: Runs) -> Comparison:
    """After placing, every weight is where its module runs, or a hook has a copy of it to bring there."""
    stranded = of(runs).placed.report.stranded
    for name, why in stranded.items():
        got = f"{name}: {why} ({len(stranded)} in all)"
        field = WITHOUT_A_COPY if why.startswith("its hook") else "weights"
        return Comparison.of(Difference("missing", field, "every weight there, or brought by a hook", got))
    return Comparison()


@check(PLACEMENT, stands_on=["planning-never-crashes", "nothing-stranded-on-meta"], bitwise=True, script="grouped")
@guarded(was_placed)
@applies("the map itself splits a tied group", lambda runs: not runs.case.plan.split_tied)
@applies("the model ties no weights", lambda runs: bool(tied_groups(of(runs).base)))
def placed_groups_stay_tied(runs: Runs) -> Comparison:
    """Weights that are tied stay one: in one place, with one storage or one offloaded value."""
    for group, where in of(runs).placed.report.split.items():
        return Comparison.of(Difference("changed", "tied group", "one weight", f"{', '.join(group)}: {where}"))
    return Comparison()


@check(PLACEMENT, stands_on=["planning-never-crashes", "nothing-stranded-on-meta"], bitwise=True, script="mapped")
@guarded(was_placed)
def map_covers_the_model(runs: Runs) -> Comparison:
    """A placed model says where its modules are: `hf_device_map` covers every one that has weights.

    A model that runs on one device need not have a map.
    """
    placed = of(runs).placed
    for module in placed.report.unmapped:
        got = f"none for {module or 'the model itself'}"
        return Comparison.of(Difference("missing", "hf_device_map", "an entry for every module", got))
    if getattr(placed.model, "hf_device_map", None) is not None:
        return Comparison()
    if runs.case.plan.loader in OFFLOADERS:
        return Comparison(allowed=["an offloaded model runs on one device and has no hf_device_map"])
    if len(placed.holding) > 1:
        got = f"no map, weights on {', '.join(placed.holding)}"
        return Comparison.of(Difference("missing", "hf_device_map", "a map", got))
    return Comparison(allowed=["a model on one device has no hf_device_map"])


@check(
    PLACEMENT, stands_on=["planning-never-crashes", "nothing-stranded-on-meta"], bitwise=True, excuses=on_its_own_map
)
@guarded(can_run)
def no_op_reads_meta(runs: Runs) -> Comparison:
    """While a placed model decodes, no op is given a tensor on `meta` and gives values: they would be garbage.

    An op that refuses such a tensor raises; that is a matter of `placed-matches-unplaced`.
    """
    watch = watched(runs)
    if not watch.reads:
        return Comparison()
    first = min(watch.reads)
    got = ", ".join(f"{op} {count} times" for op, count in sorted(watch.reads.items()))
    what = ", ".join(sorted(watch.weights)) or "no weight, but what was given"
    return Comparison.of(Difference("values", "meta input", "no op reads meta", f"{got}: {what}", raised_in=first))


@check(
    PLACEMENT,
    stands_on=["placed-weights-are-the-same", "placed-groups-stay-tied", "no-op-reads-meta"],
    script="placed",
    excuses=on_its_own_map,
)
@guarded(can_run)
@guarded(reads_nothing_on_meta)
@guarded(draws_apart)
def placed_matches_unplaced(runs: Runs) -> Comparison:
    """A placed model decodes as the same model does undispatched: sequences exactly, logits within the bound.

    Token ids are put where the embeddings run, or on `model.device`, as the documentation does. No op gives values of
    tensors that are on several devices: an accelerator refuses them.
    """
    own = of(runs)
    if own.placed_outcome.crash is not None:
        return crash_difference(own.placed_outcome.crash, "the undispatched model works")
    if (mixed := watched(runs).mixed) and runs.case.plan.simulated:
        got = ", ".join(f"{op} {count} times" for op, count in sorted(mixed.items()))
        wanted = "no op gives values of tensors on several devices"
        return Comparison.of(Difference("values", "devices", wanted, got, raised_in=min(mixed)))
    return compare_calls(own.placed_outcome, own.unplaced_outcome, bound_of(runs.case.plan, runs.bound))


@check(PLACEMENT, stands_on=["placed-weights-are-the-same"], bitwise=True, script="reloaded", excuses=on_its_own_map)
@guarded(is_whole)
@applies("a tied group came apart already, which is another check's", lambda runs: not came_apart(runs))
def save_and_reload_keeps_ties(runs: Runs) -> Comparison:
    """A placed model, saved and loaded again, has the same weights, and its tied groups are one.

    Both as it was placed and after it has decoded, where that works.
    """
    own = of(runs)
    for when, again in own.reloaded.items():
        if again.crash is not None:
            return crash_difference(again.crash, f"the undispatched model is saved and loaded ({when})")
        if wrong := _not_as_before(own.unplaced, again, when):
            return Comparison.of(wrong)
    return Comparison()


def _not_as_before(unplaced: Placed, again: Placed, when: str) -> Difference | None:
    expected, got = unplaced.model.state_dict(), again.model.state_dict()
    constants = upstream.never_saved(unplaced.model)  # which loading makes anew
    for name, tensor in expected.items():
        if name in constants:
            continue
        if name not in got or not torch.equal(tensor, got[name]):
            return Difference("changed", "weights", "as before", f"{name} differs after reloading (saved {when})")
    for group, where in again.report.split.items():
        return Difference("changed", "tied group", "one weight", f"{', '.join(group)}: {where} (saved {when})")
    return None


@check(PLACEMENT, stands_on=["planning-never-crashes"], bitwise=True, script="configured")
@guarded(was_placed)
def placement_changes_no_config(runs: Runs) -> Comparison:
    """Placing a model leaves its config and its generation config as the same loader makes them without a map.

    So it does with what is in evaluation mode and what needs no gradient, and with the implementation of attention. And
    where the model has decoded, they are as they are after the same without a placement.
    """
    own = of(runs)
    if more := frozen_by_placing(own.unplaced.config, own.placed.config):
        return Comparison.of(Difference("changed", FROZEN, "nothing more than without a placement", ", ".join(more)))
    for path, how in config_changes(own.unplaced.config, own.placed.config).items():
        return Comparison.of(Difference("changed", path, "as without a placement", how))
    if has_decoded(runs) is None:
        unplaced, placed = (one.extra["configs"] for one in (own.unplaced_outcome, own.placed_outcome))
        for path, how in config_changes(unplaced, placed).items():
            return Comparison.of(Difference("changed", path, "as after decoding without a placement", how))
    return Comparison()


@check(PLACEMENT, bitwise=True, answered_by="audit")
@guarded(cannot_be_had)
@applies("nothing is damaged on purpose", lambda runs: runs.case.plan.stranded is not None)
def stranded_weight_is_named(runs: Runs) -> Comparison:
    """A weight or buffer that was left on `meta` with nothing to bring it gives an error that names it or its module.

    Without one, an op may compute garbage from it in silence, or fail far from the cause. An audit also names what else
    is damaged: a tied weight with values of its own, a weight elsewhere than its module runs, a module that the map
    leaves out, a weight whose hook has no copy of it.
    """
    own = of(runs)
    if own.unplaced_outcome.crash is not None:
        return Comparison(not_applicable="the model raises in this mode with all its weights")
    return stranded_outcome(runs, own)
