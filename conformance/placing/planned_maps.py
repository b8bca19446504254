"""The map that a subject planned, and what is promised of it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance import upstream
from conformance.placing.guards import of
from conformance.placing.loaded import in_dtypes
from conformance.placing.placed import Placed
from conformance.placing.recipe import size_of
from conformance.placing.right_map import Place, too_much
from conformance.reference.planner import make_units
from conformance.runs import Runs

PARTS_MORE = 3  # whatever the order in which parts are put, what is left of a device is less than the next of them


def map_of(runs: Runs) -> dict[str, Place] | None:
    """The map that was planned: as the subject says, else as the placed model does; None where there is none."""
    return runs.once("planned map", lambda: _map_of(runs))


def _map_of(runs: Runs) -> dict[str, Place] | None:
    own = of(runs)
    found: object
    if hasattr(runs.subject, "planned"):  # that it planned nothing is told by planning-never-crashes
        found = None if own.planned.recipe is None else own.planned.recipe.device_map
    else:
        found = getattr(own.placed.model, "hf_device_map", None) or _whole(own.placed)
    return {name: as_named(place) for name, place in found.items()} if isinstance(found, Mapping) else None


def _whole(placed: Placed) -> dict[str, str] | None:
    """The map of a model on one device, which is given none; not of one that only rests there."""
    alone = len(placed.holding) == 1 and placed.holding[0] != "offloaded"
    return {"": placed.holding[0]} if alone and not upstream.rests_on_the_cpu(placed.model) else None


def as_named(place: object) -> Place:
    """As `max_memory` names it: an accelerator by its number."""
    device, _, number = str(place).rpartition(":")
    return int(number) if number.isdigit() else device or number


def promised_otherwise(runs: Runs, device_map: Mapping[str, Place]) -> str | None:
    """Why the documentation of the installed planner does not promise the limits that are broken; None: it does.

    `infer_auto_device_map`: "we don't exceed the memory available of any of the GPU", "if offload to the CPU is needed,
    we don't exceed the RAM available on the CPU", "all computation is done analyzing sizes and dtypes of the model
    parameters". What a class keeps in float32, whatever dtype is asked for, is not of that dtype until it is loaded. A
    subject that plans by itself is held to every limit, and to every tensor as it is loaded.
    """
    if hasattr(runs.subject, "planned"):
        return None
    own = of(runs)
    limits = own.recipe.limits or {}
    promised = {place: limit for place, limit in limits.items() if place != "cpu" or runs.case.plan.accelerated}
    if too_much(own.weighed, device_map, promised) is None:
        return "the CPU's limit is promised for what is offloaded from an accelerator"
    if too_much(own.weighed, device_map, promised, buffers=False) is None:
        return "limits are promised for parameters, not for buffers"
    asked = in_dtypes(own.copied(), {name: own.dtype for name, _ in own.base.named_parameters(remove_duplicate=False)})
    if too_much(asked, device_map, promised, buffers=False) is None:
        return "limits are promised for the dtype that is asked for, not for what stays in float32"
    return None


def may_need_more(runs: Runs) -> str | None:
    """Why a planner may have to offload: an accelerator that cannot take its share of the model and three parts more.

    A share is what each takes where the first takes nothing, as `balanced_low_0` has it.
    """
    own = of(runs)
    whole = set(getattr(own.base, "_no_split_modules", None) or ())
    part = max((unit.size for unit in make_units(own.weighed, whole)), default=0)
    room = [size for place, size in (own.recipe.limits or {}).items() if place != "cpu"]
    share = size_of(own.weighed) / max(1, len(room) - 1)
    return None if min(room) >= share + PARTS_MORE * part else "an accelerator has no ample room"
