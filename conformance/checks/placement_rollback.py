"""A cache that is cropped while its layers are on several devices."""

from __future__ import annotations

import torch

from conformance.checks.placement import PLACEMENT
from conformance.compare import compare_steps, crash_difference
from conformance.placing.guards import beside_plain, of
from conformance.placing.mechanisms import Cropped, cropped
from conformance.registry import check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison


def _unplaced(runs: Runs) -> Cropped:
    return runs.once("cropped without a placement", lambda: cropped(of(runs), of(runs).unplaced))


def _works_unplaced(runs: Runs) -> str | None:
    """Why nothing is to be compared with: whether the crop itself is right is told by the family `rollback`."""
    found = _unplaced(runs)
    if found.crash is not None:
        return f"the same raises {found.crash.type} without a placement"
    return found.refusal or None


@check(PLACEMENT, stands_on=["placed-matches-unplaced"])
@guarded(beside_plain("crop"))
@guarded(_works_unplaced)
def placed_crop_round_trip(runs: Runs) -> Comparison:
    """With layers on several devices, a crop takes back the same tokens on each of them.

    The prompt is fed, some tokens at once, most of them are taken back, and one more is fed: all logits are those of
    the undispatched model, within the bound.
    """
    found, expected = cropped(of(runs), of(runs).placed), _unplaced(runs)
    if found.crash is not None:
        return crash_difference(found.crash, "the same works without a placement")
    if not found.transfers:
        return Comparison(not_applicable="nothing was moved from one device to another")
    runs.events.add("mechanism: crop")
    result = Comparison()
    for row in range(found.logits[0].shape[0]):
        got, wanted = (_of_row(one, row) for one in (found, expected))
        result += compare_steps("logits", got, wanted, lambda _: 0.0, f"row {row} ", runs.bound)
    return result


def _of_row(found: Cropped, row: int) -> list[torch.Tensor]:
    return [position for forward in found.logits for position in forward[row]]
