"""Memory: a device is given what the map gives it and no more, and gets back what a call has borrowed."""

from __future__ import annotations

from conformance.checks.placement import PLACEMENT
from conformance.placing.guards import is_whole, of
from conformance.placing.memory import given_by, moved, to_spare
from conformance.placing.planned_maps import map_of
from conformance.plans.placement import OFFLOADERS
from conformance.registry import check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(PLACEMENT, stands_on=["parts-are-where-the-map-says"], bitwise=True)
@guarded(is_whole)
def memory_is_as_mapped(runs: Runs) -> Comparison:
    """No simulated device holds more while a model is placed than the map gives it, but for what loading takes.

    After a call no weight is held where it was not: what was brought for a forward is not kept.
    """
    own, plan = of(runs), runs.case.plan
    if plan.simulated and (wrong := _too_much(runs)):
        return Comparison.of(wrong)
    if own.placed_outcome.crash is not None:
        return Comparison(not_applicable=f"the placed model raises {own.placed_outcome.crash.type}")
    if wrong_place := moved(own.placed.where, own.placed_outcome.extra["where"]):
        return Comparison.of(Difference("changed", "places after a call", "where it was placed", wrong_place))
    return Comparison()


def _too_much(runs: Runs) -> Difference | None:
    own = of(runs)
    device_map = map_of(runs) if runs.case.plan.planned else own.recipe.device_map
    if device_map is None or isinstance(device_map, str):
        return None  # which is another check's
    offloads_all = runs.case.plan.loader in OFFLOADERS
    given, spare = given_by(own.weighed, {} if offloads_all else device_map), to_spare(own.base, own.weighed)
    for device, held in sorted(own.placed.peaks.items()):
        if held > given[device] + spare:
            expected = f"sim:{device} holds at most {given[device]} bytes, and {spare} while it is loaded"
            return Difference("changed", "memory", expected, f"{held} bytes")
    return None
