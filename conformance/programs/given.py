"""Caches that a caller gives to `generate`, without any operation on them, against recomputing everything."""

from __future__ import annotations

import torch

from conformance.clock import MODEL_CODE
from conformance.compare import crash_difference
from conformance.limits import time_limit
from conformance.plans.rollback_programs import fed, segments
from conformance.programs.machine import Groups, frozen
from conformance.programs.prepared import plan_of, truths_of
from conformance.programs.truths import Truths, Unusable
from conformance.runs import Runs
from conformance.verdicts import Comparison

GIVEN = ("quantized", "plain")
OWN = "the cache that generate makes says something else than recomputing everything, too"


def given_against_recomputed(runs: Runs) -> Comparison:
    """The prompt and the forwards of the program's first cache, each against recomputing everything."""
    if plan_of(runs).cache not in GIVEN:
        return Comparison(not_applicable="generate makes the cache of this plan")
    try:
        found = _forwards(runs, truths_of(runs))
    except Unusable as error:
        if error.refused:
            return Comparison(allowed=[f"a cache of this class is refused: {error.crash.message}"[:200]])
        found = crash_difference(error.crash, "the cache that generate makes works")
    return found if not found.differences or _own_is_right(runs) else Comparison(not_applicable=OWN)


def _forwards(runs: Runs, truths: Truths) -> Comparison:
    result: Comparison = Comparison()
    groups: Groups = ()
    sources = range(len(runs.rows))
    for op in (None, *(op for op in segments(plan_of(runs).program)[0] if op.op == "feed" and op.tokens)):
        if op is not None:
            groups = (*groups, frozen(fed(op.tokens, len(sources), runs.scenario.vocabulary)))
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            result += truths.recomputed(groups, sources)
        if result.differences:
            break
    return result


def _own_is_right(runs: Runs) -> bool:
    """Whether the cache that `generate` makes passes in its place."""
    plan = plan_of(runs).replace(cache="default")
    own = Runs(runs.case.replace(plan=plan), runs.subject)
    try:
        return not _forwards(own, truths_of(own)).differences
    except Unusable:
        return False
