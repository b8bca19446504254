"""What a cache tells of itself as a whole: whether it is empty or filled, one or made of two."""

from __future__ import annotations

from typing import Any

from conformance import upstream
from conformance.checks.rollback import ROLLBACK, usable
from conformance.compare import crash_difference
from conformance.outcome import Crash
from conformance.programs import caches
from conformance.programs.prepared import plan_of, truths_of
from conformance.programs.truths import Unusable
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

ASKED = ("early", "plain", "bare")  # that a caller makes, or does something with, before anything is fed


@check(ROLLBACK, bitwise=True)
@usable
@applies(
    "the plan's cache is not one that a caller has before anything is fed", lambda runs: plan_of(runs).cache in ASKED
)
def cache_tells_of_itself(runs: Runs) -> Comparison:
    """What a filled cache tells of itself an empty one tells, too; a cache of two tells and does what its own one does.

    The first of the two is the decoder's: its batch size, its lengths and whether it is initialised are the whole's.
    """
    try:
        truths = truths_of(runs)
        empty, filled = truths.empty().cache, truths.of((), truths.empty().sources)[0].cache
    except Unusable as error:
        return Comparison(not_applicable=f"the prompt raises on this cache: {error}"[:200])
    early = plan_of(runs).cache == "early"
    result = _allocated(truths.empty().cache, filled, len(runs.rows)) if early else Comparison()
    result += _answered(upstream.answers_of(empty), upstream.answers_of(filled), "empty")
    for cache, where in ((empty, "empty"), (filled, "filled")):
        own = upstream.own_part(cache)
        if own is not cache:
            result += _answered(upstream.answers_of(cache), upstream.answers_of(own), where, alike=True)
    return result


def _answered(told: dict[str, Any], known: dict[str, Any], where: str, *, alike: bool = False) -> Comparison:
    """Whether all is answered that is known, other than by an exception; alike: with what is known."""
    result = Comparison()
    for word, value in known.items():
        got = told.get(word, "nothing")
        if isinstance(value, int) and (got != value if alike else isinstance(got, str)):
            wanted = f"{value}, as its own part tells" if alike else f"a number, as when it is filled: {value}"
            result += Comparison.of(Difference("values", word, wanted, str(got), where))
    return result


def _allocated(empty: Any, filled: Any, rows: int) -> Comparison:
    """Whether a cache that is made of two can be told to allocate its layers, as one of a single kind can."""
    if upstream.own_part(empty) is empty or caches.sizes_of(filled) is None:
        return Comparison()
    try:
        caches.initialize_early(empty, filled, rows, whole=True)
    except Exception as error:  # noqa: BLE001 - the cache under test may raise anything
        return crash_difference(Crash.of(error), "its own part can be allocated early")
    told = upstream.answers_of(upstream.own_part(empty))["is_initialized"]
    if told == 1:
        return Comparison()
    return Comparison.of(Difference("values", "is_initialized", "1 of its own part", str(told), "allocated early"))
