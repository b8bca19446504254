"""Memory: a device is given what the map gives it and no more, also while a model is placed."""

from __future__ import annotations

from conformance.checks.placement import PLACEMENT
from conformance.placing.guards import is_whole, of
from conformance.placing.memory import given_by, to_spare
from conformance.placing.on_planned_map import on_its_own_map
from conformance.placing.planned_maps import map_of
from conformance.plans.placement_told import OFFLOADERS
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(PLACEMENT, stands_on=["parts-are-where-the-map-says"], bitwise=True, excuses=on_its_own_map)
@guarded(is_whole)
@applies("no accelerator is simulated, and only those count bytes", lambda runs: runs.case.plan.simulated)
def memory_is_as_mapped(runs: Runs) -> Comparison:
    """No simulated device holds more while a model is placed than the map gives it, but for what loading takes."""
    own, plan = of(runs), runs.case.plan
    device_map = map_of(runs) if plan.planned else own.recipe.device_map
    if device_map is None or isinstance(device_map, str):
        return Comparison(not_applicable="there is no map to compare with, which is another check's")
    given = given_by(own.weighed, {} if plan.loader in OFFLOADERS else device_map)
    spare = to_spare(own.base, own.weighed)
    for device, held in sorted(own.placed.peaks.items()):
        if held > given[device] + spare:
            expected = f"sim:{device} holds at most {given[device]} bytes, and {spare} while it is loaded"
            return Comparison.of(Difference("changed", "memory", expected, f"{held} bytes"))
    return Comparison()
