"""Special tokens for a model whose layers are on several devices."""

from __future__ import annotations

from conformance.checks.placement import PLACEMENT
from conformance.compare import crash_difference
from conformance.placing.comparing import compare_calls
from conformance.placing.guards import beside_plain, of
from conformance.placing.mechanisms import no_transfer, spoken_elsewhere
from conformance.registry import check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison


@check(PLACEMENT, stands_on=["placed-matches-unplaced"])
@guarded(beside_plain("special tokens"))
def placed_special_tokens_match_plain(runs: Runs) -> Comparison:
    """Special tokens given as tensors, on the CPU or on any device that holds weights, serve as plain numbers do.

    `generate` compares them with tokens where the ids are, which need not be where the tensor was made.
    """
    own, result = of(runs), Comparison()
    untold: list[str | None] = []
    for device in ("cpu", *(place for place in own.placed.holding if place not in ("cpu", "offloaded"))):
        spoken = spoken_elsewhere(own, device)
        if spoken.crash is not None:
            return crash_difference(spoken.crash, "the same ids as plain numbers work")
        untold.append(no_transfer(spoken))
        if not untold[-1]:
            result += compare_calls(spoken, own.placed_outcome, runs.bound)
    if all(untold):
        return Comparison(not_applicable=str(untold[0]))
    runs.events.add("mechanism: special tokens")
    return result
