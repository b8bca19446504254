"""Beam search with a cache, against scoring every returned sequence again without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance.clock import MODEL_CODE
from conformance.compare import ROUNDING_FACTOR, compare_steps, crash_difference, scale_of
from conformance.limits import time_limit
from conformance.programs.prepared import Raised, generated, plain_call, plan_of
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

PLAIN_SUM = {"length_penalty": 0.0}  # a sequence's score is then the sum, whatever its length


def beams_against_rescoring(runs: Runs) -> Comparison:
    """Every returned beam's score is the sum of the recomputed log-probabilities of its tokens."""
    plan = plan_of(runs)
    if plan.beams < 2:
        return Comparison(not_applicable="the plan has no beams")
    rows = [0] if runs.ignores_padding and runs.case.prompt.padded else list(runs.rows)
    chosen = None if len(rows) == len(runs.rows) else rows
    asked = {"num_beams": plan.beams, "num_return_sequences": plan.beams, **PLAIN_SUM}
    output = generated(runs, chosen, asked, {})
    if isinstance(output, Raised):
        if output.refusal:
            return Comparison(allowed=[f"generate refuses beams here: {output.crash.message}"[:200]])
        if isinstance(generated(runs, chosen, {}, {}), Raised):
            return Comparison(not_applicable="the same batch raises without beams")
        crashed = crash_difference(output.crash, "the same batch works without beams").differences[0]
        return Comparison.of(replace(crashed, where="beam search"))
    runs.events.add("beams: several")
    start = 1 if runs.scenario.encoder_decoder else max(len(runs.case.prompt.rows[row]) for row in rows)
    result = _all_rescored(runs, rows, output, start)
    if result.differences and _wrong_without_cache(runs, rows, chosen, asked, start):
        return Comparison(not_applicable="beam search without a cache returns wrong scores, too")
    if result.differences and not _greedily_right(runs, rows, chosen, start):
        return Comparison(not_applicable="decoding this batch greedily on this cache is wrong already")
    return result


def _all_rescored(runs: Runs, rows: Sequence[int], output: Any, start: int) -> Comparison:
    """Every beam of every row against its own rescoring, until one differs."""
    result, beams = Comparison(), plan_of(runs).beams
    for beam, (sequence, score) in enumerate(zip(output.sequences, output.sequences_scores, strict=True)):
        row, tokens = rows[beam // beams], sequence[start:].tolist()
        result += _rescored(runs, row, tokens, float(score), f"beam {beam % beams}")
        if result.differences:
            break
    return result


def _wrong_without_cache(
    runs: Runs, rows: Sequence[int], chosen: Sequence[int] | None, asked: dict[str, Any], start: int
) -> bool:
    """Whether the search's scores are wrong where there is no cache that could be to blame."""
    model = runs.scenario.model()
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            output = model.generate(**plain_call(runs, chosen, **asked, use_cache=False).arguments())
    except Exception:  # noqa: BLE001 - then it tells nothing
        return False
    return bool(_all_rescored(runs, rows, output, start).differences)


def _greedily_right(runs: Runs, rows: Sequence[int], chosen: Sequence[int] | None, start: int) -> bool:
    """Whether the logits of greedy decoding with the same class of cache are those of recomputing everything."""
    output = generated(runs, chosen, {}, {})
    if isinstance(output, Raised):
        return False
    for index, row in enumerate(rows):
        tokens = output.sequences[index, start:].tolist()
        expected, got = list(runs.oracle.logits(row, tokens)), [step[index] for step in output.logits]
        found = compare_steps("logits", got, expected, runs.noise(row, tokens), "", runs.bound)
        if found.differences or found.ties:
            return False
    return True


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
