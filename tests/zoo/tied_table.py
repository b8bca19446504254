"""Broken ties, and the check meant for each."""

from __future__ import annotations

from zoo import planted
from zoo.fault import Fault
from zoo.fault import seen as _seen

TIED, WRONG = "tied-groups-stay-tied", "wrong-ties-are-refused"

FAULTS = (
    Fault(
        TIED,
        _seen(("untied", "saving and loading"), ("untied", "making"), ("length", "checkpoint")),
        planted=planted.loading_forgets_a_tie,
        also={WRONG: "the release itself accepts a second source"},
    ),
    Fault(
        TIED,
        _seen(("tied", "more than said"), ("tied", "names that begin alike"), ("untied", "making")),
        planted=planted.tying_takes_the_neighbour,
        also={WRONG: "the release itself accepts a second source"},
    ),
    Fault(
        WRONG,
        _seen(("silent", "target"), ("silent", "source"), ("silent", "two sources")),
        planted=planted.wrong_ties_are_ignored,
        also={TIED: "the release itself resolves pairs in one order only"},
    ),
)
