"""A device map that is kept: what it puts in a place is there."""

from __future__ import annotations

from conformance.checks.placement import PLACEMENT
from conformance.placing.guards import is_whole, of
from conformance.placing.on_planned_map import on_its_own_map
from conformance.placing.planned_maps import map_of
from conformance.placing.whereabouts import out_of_place, split_by, told, told_otherwise
from conformance.registry import check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(
    PLACEMENT, stands_on=["planning-never-crashes", "nothing-stranded-on-meta"], bitwise=True, excuses=on_its_own_map
)
@guarded(is_whole)
def parts_are_where_the_map_says(runs: Runs) -> Comparison:
    """Each parameter and buffer is where the device map puts it, and what is offloaded is brought where the rest runs.

    The map is the case's, or the one that was planned; `hf_device_map` says the same. And what is held is on the device
    on which the hooks of its module run it.
    """
    own, plan = of(runs), runs.case.plan
    device_map = map_of(runs) if isinstance(own.recipe.device_map, str) else own.recipe.device_map
    if device_map is None:
        return Comparison(not_applicable="there is no map to compare with, which is another check's")
    with own.present():
        terms = told(own.base, device_map, own.recipe, plan.hardware)
        reported = getattr(own.placed.model, "hf_device_map", None) or {}
        if wrong := told_otherwise(terms, reported, own.placed.where):
            return Comparison.of(Difference("changed", "hf_device_map", "the map that was asked for", wrong))
        if wrong := out_of_place(terms, own.placed.where):
            return Comparison.of(Difference("changed", "places", "as the map says", wrong))
    for name in sorted({*own.placed.report.elsewhere} - split_by(terms)):
        got = f"{name} is on {own.placed.report.elsewhere[name]}"
        return Comparison.of(Difference("changed", "places", "where its module runs", got))
    return Comparison()
