"""What placing promises beside an answer: a planned map within its memory, and an audit that accuses nothing right."""

from __future__ import annotations

from conformance.checks.placement import PLACEMENT
from conformance.placing.comparing import compare_calls
from conformance.placing.devices import bound_of
from conformance.placing.guards import can_run, cannot_be_had, draws_apart, of
from conformance.placing.planned_maps import map_of, may_need_more, promised_otherwise
from conformance.placing.right_map import too_much
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(PLACEMENT, stands_on=["planning-never-crashes"], bitwise=True)
@guarded(cannot_be_had)
@applies("the map is the case's own", lambda runs: runs.case.plan.planned)
@applies("it is damaged on purpose", lambda runs: runs.case.plan.stranded is None)
@applies("nothing was planned", lambda runs: map_of(runs) is not None)
def planned_map_keeps_within_memory(runs: Runs) -> Comparison:
    """A map that is planned gives no place more than `max_memory` lets it hold, each weight counted once in a place.

    Of the installed release, its own documentation says for what: parameters on accelerators, and on the CPU where
    parts are offloaded to it. More than is promised by nobody is allowed and named.
    """
    device_map, limits = map_of(runs), of(runs).recipe.limits
    assert device_map is not None
    found = too_much(of(runs).weighed, device_map, limits)
    if found is None:
        return Comparison()
    if reason := promised_otherwise(runs, device_map):
        return Comparison(allowed=[f"{reason}: {found}"])
    return Comparison.of(Difference("values", "max_memory", "no place holds more than it may", found))


@check(PLACEMENT, stands_on=["planned-map-keeps-within-memory"], bitwise=True)
@guarded(cannot_be_had)
@applies("the map is the case's own", lambda runs: runs.case.plan.planned)
@applies("it is damaged on purpose", lambda runs: runs.case.plan.stranded is None)
@applies("there is no accelerator", lambda runs: runs.case.plan.accelerated)
@guarded(may_need_more)
@applies("nothing was planned", lambda runs: map_of(runs) is not None)
def planned_map_fills_accelerators_first(runs: Runs) -> Comparison:
    """A map that is planned offloads nothing where every accelerator has ample room: its share, and three parts more.

    "giving priority to GPUs, then offload on CPU and finally offload to disk": what is offloaded needlessly is brought
    again in every forward. A part is the largest of those that are never cut, tied ones taken together.
    """
    device_map = map_of(runs)
    assert device_map is not None
    away = sorted(name for name, place in device_map.items() if not isinstance(place, int))
    if not away:
        return Comparison()
    got = f"{', '.join(away[:3])} on {device_map[away[0]]} ({len(away)} in all)"
    return Comparison.of(Difference("values", "hf_device_map", "all on the accelerators, which have room", got))


@check(
    PLACEMENT,
    stands_on=["placed-groups-stay-tied", "map-covers-the-model", "placed-matches-unplaced"],
    bitwise=True,
)
@guarded(can_run)
@applies("the subject audits nothing", lambda runs: hasattr(runs.subject, "audit"))
@applies("the map itself splits a tied group", lambda runs: not runs.case.plan.split_tied)
@guarded(draws_apart)
def audit_accuses_nothing_right(runs: Runs) -> Comparison:
    """An audit of a model that is placed right raises nothing.

    Right is what decodes as the same model does undispatched, with its ties and its map in order: no audit is asked. It
    is audited as it was placed, before a decoding, which may take its hooks away.
    """
    own = of(runs)
    if own.placed_outcome.crash is not None:
        return Comparison(not_applicable="the placed model does not decode")
    if compare_calls(own.placed_outcome, own.unplaced_outcome, bound_of(runs.case.plan, runs.bound)).differences:
        return Comparison(not_applicable="the placed model decodes otherwise than undispatched")
    if (raised := own.audited) is None:
        return Comparison()
    got = f"{raised.type}: {raised.message}"
    return Comparison.of(Difference("accused", "audit", "no error: it decodes as undispatched", got))
