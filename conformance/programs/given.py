"""Caches that a caller gives to `generate`, without any operation on them, against recomputing everything."""

from __future__ import annotations

from dataclasses import replace

import torch

from conformance.clock import MODEL_CODE
from conformance.compare import crash_difference
from conformance.limits import time_limit
from conformance.plans.rollback_programs import fed, segments
from conformance.programs.machine import Groups, frozen
from conformance.programs.prepared import plan_of, truths_of
from conformance.programs.truths import Truths, Unusable
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.verdicts import Comparison

GIVEN = ("quantized", "plain", "bare")
OWN = "cached-matches-recomputed"  # the rung to blame where the cache that `generate` makes is no better


def given_against_recomputed(runs: Runs) -> Comparison:
    """The prompt and the forwards of the program's first cache, each against recomputing everything."""
    if plan_of(runs).cache not in GIVEN:
        return Comparison(not_applicable="generate makes the cache of this plan")
    found = _told(runs)
    if found.differences and (own := _own(runs)).differences and (_raises(own) or not _raises(found)):
        return replace(found, blocked_by=OWN)  # a crash only by a cache that raises too
    return found


def _own(runs: Runs) -> Comparison:
    """The same with the cache that the installed `generate` makes."""
    plan = plan_of(runs).replace(cache="default")
    return _told(Runs(runs.case.replace(plan=plan), Installed()))


def _told(runs: Runs) -> Comparison:
    try:
        return _forwards(runs, truths_of(runs))
    except Unusable as error:
        if error.refused:
            return Comparison(allowed=[f"a cache of this class is refused: {error.crash.message}"[:200]])
        return crash_difference(error.crash, "the cache that generate makes works")


def _raises(found: Comparison) -> bool:
    return any(difference.kind == "crash" for difference in found.differences)


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
