"""The same function computed in other ways than by a cache: with none, and by another kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from conformance import upstream
from conformance.build import Scenario
from conformance.case import Case
from conformance.checks.cached import CACHED
from conformance.compare import compare_steps, crash_difference
from conformance.oracle import Oracle, OracleRaised
from conformance.outcome import Crash
from conformance.registry import applies, check
from conformance.rows import compare_lengths, compare_row
from conformance.runs import Runs
from conformance.verdicts import Comparison


@check(CACHED, stands_on=["cached-matches-recomputed", "padded-row-matches-alone"])
@applies(
    "the type documents that it ignores padding",
    lambda runs: not (runs.case.prompt.padded and "ignores_padding" in runs.facts),
)
def uncached_matches_recomputed(runs: Runs) -> Comparison:
    """All rows at once, decoded where no cache is asked for, give what recomputing each row alone gives.

    Every step then takes all tokens so far: none is left out, and positions and masks are those of all of them.
    """
    uncached = runs.run(runs.call(use_cache=False))
    if uncached.crash:
        if runs.batch.crash:
            return Comparison(not_applicable="with a cache it raises, too: the rungs below tell of it")
        return crash_difference(uncached.crash, "the same call works with a cache")
    result = compare_lengths(runs, uncached)
    for row in runs.rows:
        for index in runs.sequences(row):
            tokens = runs.kept(row, uncached.tokens(index))
            result += compare_row(runs, uncached, index, row, None, list(runs.oracle.logits(row, tokens)))
    return result


@check(CACHED)
@applies("the type has one kernel for attention", lambda runs: len(runs.capabilities.attention) > 1)
def kernels_agree(runs: Runs) -> Comparison:
    """A row alone, recomputed, has the same logits whichever kernel computes its attention.

    What a kernel does not know of (a mask, a bias, a cap, sinks, a scale) is to be refused and not left out.
    """
    result = Comparison()
    for row in runs.rows:
        tokens = _said(runs, row)
        expected = list(runs.oracle.logits(row, tokens))
        for kernel, oracle in _others(runs):
            got = _recomputed(oracle, row, tokens)
            if isinstance(got, Crash):
                refused = upstream.refusal(got.type, got.message)
                if refused is not None:
                    return Comparison(not_applicable=f"refused as documented: {refused}")
                return crash_difference(got, f"{runs.case.model.attention} attention works")
            where = f"row {row} by {kernel} " if len(runs.rows) > 1 else f"by {kernel} "
            result += compare_steps("logits", list(got), expected, runs.noise(row, tokens), where, runs.bound)
    return result


def _said(runs: Runs, row: int) -> list[int]:
    """The row's own new tokens; one of no consequence where it has none."""
    alone = runs.alone[row]
    return [0] if alone.crash else runs.kept(row, alone.tokens(0))


def _others(runs: Runs) -> Iterator[tuple[str, Oracle]]:
    """The type's other kernels, each with an oracle of its own."""
    case = runs.scenario.case
    for kernel in runs.capabilities.attention:
        if kernel != case.model.attention:
            other = case.replace(model=case.model.replace(attention=kernel), fingerprint=None)
            yield kernel, runs.once(("by kernel", kernel), partial(_oracle, other))


def _oracle(case: Case) -> Oracle:
    return Oracle(Scenario(case))


def _recomputed(oracle: Oracle, row: int, tokens: list[int]) -> torch.Tensor | Crash:
    try:
        return oracle.logits(row, tokens)
    except OracleRaised as error:
        return Crash.of(error.__cause__ or error)
