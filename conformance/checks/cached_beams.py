"""Beam search: what is returned has the scores that are told, whatever the batch, the images and the cache."""

from __future__ import annotations

from conformance.checks.cached import CACHED
from conformance.programs.beams import UNCACHED, beams_against_rescoring, order_of_beams
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison

BELOW = ("cached-matches-recomputed", "padded-row-matches-alone")
NO_BEAMS = ("the plan has no beams", lambda runs: getattr(runs.case.plan, "beams", 1) > 1)


@check(CACHED, stands_on=BELOW)
@applies(*NO_BEAMS)
def beams_score_their_sequences(runs: Runs) -> Comparison:
    """Each sequence of a beam search without a cache has the score that its tokens have, and the best comes first.

    The score is the sum of the recomputed log-probabilities of its tokens, each row alone, over the length to the
    power of the length penalty. No two sequences of a row are the same. Beams may be drawn.
    """
    return beams_against_rescoring(runs, **UNCACHED) + order_of_beams(runs, **UNCACHED)


@check(CACHED, stands_on=(*BELOW, "beams-score-their-sequences"))
@applies(*NO_BEAMS)
@applies("cached decoding of this type is another function by design", lambda runs: "not_incremental" not in runs.facts)
def cached_beams_score_their_sequences(runs: Runs) -> Comparison:
    """The same of a search with a cache, whose prompt may be read in chunks."""
    chunk = runs.case.plan.search.chunk
    config = {"prefill_chunk_size": chunk} if chunk else {}
    return beams_against_rescoring(runs, **config) + order_of_beams(runs, **config)
