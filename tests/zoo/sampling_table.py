"""The faults of the `sampling` family's zoo, as `zoo.table` lists those of the others."""

from __future__ import annotations

from conformance.subjects.reference import Reference
from zoo import sampling
from zoo.fault import Fault, seen

KEEPS = "sampling-assisted-keeps-the-distribution"


def _planted(planted):
    pairs = seen(("values", "distribution"), ("values", "frequencies"))
    return Fault(KEEPS, pairs, Reference, planted, examples=30, rare=True)


FAULTS = (
    _planted(sampling.every_draft_accepted),
    _planted(sampling.ratio_turned_round),
    _planted(sampling.rejected_drawn_from_all),
    _planted(sampling.drafts_are_the_likeliest),
)
