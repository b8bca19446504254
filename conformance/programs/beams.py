"""Beam search with a cache, against scoring every returned sequence again without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.clock import MODEL_CODE
from conformance.compare import ROUNDING_FACTOR, crash_difference, scale_of
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.programs.prepared import given_cache, plan_of, settings_of
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


def beams_against_rescoring(runs: Runs) -> Comparison:
    """Every returned beam's score is the sum of the recomputed log-probabilities of its tokens."""
    plan = plan_of(runs)
    if plan.beams < 2:
        return Comparison(not_applicable="the plan has no beams")
    rows = [0] if runs.ignores_padding and runs.case.prompt.padded else list(runs.rows)
    output = _search(runs, rows)
    if isinstance(output, Crash):
        return _crashed(runs, rows, output)
    runs.events.add("beams: several")
    start = 1 if runs.scenario.encoder_decoder else max(len(runs.case.prompt.rows[row]) for row in rows)
    result = Comparison()
    for beam, (sequence, score) in enumerate(zip(output.sequences, output.sequences_scores, strict=True)):
        result += _rescored(runs, rows[beam // plan.beams], sequence[start:].tolist(), float(score), f"beam {beam}")
        if result.differences:
            break
    return result


def _search(runs: Runs, rows: Sequence[int]) -> Any:
    beams, model = plan_of(runs).beams, runs.scenario.model()
    asked: dict[str, Any] = {"num_beams": beams, "num_return_sequences": beams, "length_penalty": 0.0}
    call = runs.call(None if len(rows) == len(runs.rows) else rows, **settings_of(runs), **asked)
    given = given_cache(runs, model, call.generation_config)
    if given:
        call.generation_config.cache_implementation = None
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            return runs.subject.generate(model, call.replace(extras={**call.extras, **given}))
    except Exception as error:  # noqa: BLE001 - whatever a subject raises is its outcome
        return Crash.of(error)


def _crashed(runs: Runs, rows: Sequence[int], crash: Crash) -> Comparison:
    """A crash of the search, where the same batch decodes greedily."""
    greedy = runs.run(runs.call(None if len(rows) == len(runs.rows) else rows, **settings_of(runs)))
    if greedy.crash:
        return Comparison(not_applicable="the same batch raises without beams")
    return crash_difference(crash, "the same batch works without beams")


def _rescored(runs: Runs, row: int, tokens: list[int], score: float, where: str) -> Comparison:
    logits = runs.oracle.logits(row, tokens)
    expected = float(logits.double().log_softmax(-1)[range(len(tokens)), tokens].sum())
    bound = 2 * len(tokens) * runs.bound * max(scale_of([logits]), 1.0)
    gap = abs(expected - score)
    if gap <= bound:
        return Comparison()
    noise = runs.noise(row, tokens)
    rounding = sum(noise(step) for step in range(len(tokens)))
    if gap <= bound + 2 * ROUNDING_FACTOR * rounding:
        return Comparison(ties=[f"{where}: {gap:.1e} is within the model's own response to rounding"])
    wanted = f"{expected:.6g} within {bound:.1e}"
    return Comparison.of(Difference("values", "sequences_scores", wanted, f"{score:.6g} (off by {gap:.1e})", where))
