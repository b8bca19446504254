"""Processed scores: what `generate` makes of logits where it is told to steer them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conformance.call import Call
from conformance.case import Settings
from conformance.checks.cached import CACHED
from conformance.compare import crash_difference, deviation, scale_of
from conformance.endings import until_end
from conformance.outcome import Outcome
from conformance.plans.purity import PurityPlan
from conformance.plans.steering import Steering
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.steering.rules import Row, Scores, scores
from conformance.steering.telling import WATERMARK, config_fields, keywords
from conformance.telling import told
from conformance.verdicts import Comparison, Difference

ROUNDING = 1e-5  # relative to the largest score: a few operations in float32
MARKED = ("watermark", "renormalize")  # not both: normalised, a watermark is spread over all tokens


def steering_of(runs: Runs) -> Steering:
    """What the case's plan steers with; a case of another family steers nothing."""
    found = getattr(runs.case.plan, "steering", Steering())
    return found.replace(renormalize=False) if all(getattr(found, name) for name in MARKED) else found


@check(CACHED, stands_on=["cached-matches-recomputed"])
@applies("the same call raises where nothing steers it", lambda runs: steered_call(runs)[1].crash is None)
@applies("the prompt holds images, and other tokens for them", lambda runs: not runs.case.prompt.images)
@applies("the plan steers nothing", lambda runs: bool(steering_of(runs).told()))
def scores_follow_from_logits(runs: Runs) -> Comparison:
    """Every score is what the settings that steer it make of that step's own logits, given the row's own ids.

    Neither padding nor another row, nor how many sequences are returned, has a part in it; and the token said is the
    best of these scores, or where it is sampled one that they allow.
    """
    call, _ = steered_call(runs)
    outcome = runs.once("steered", lambda: runs.run(call))
    if outcome.crash:
        if "probability tensor contains" in outcome.crash.message:
            return Comparison(not_applicable="no token is left to be drawn")
        return crash_difference(outcome.crash, "the same call works where nothing steers it")
    result = Comparison()
    for row in runs.rows:
        for index in runs.sequences(row):
            if not result.differences:
                result += _sequence(runs, outcome, call, row, index)
    return result


def steered_call(runs: Runs) -> tuple[Call, Outcome]:
    """The case's call with what steers it and nothing else, and what comes of it without."""

    def make() -> tuple[Call, Outcome]:
        how, drawn = steering_of(runs), runs.case.settings
        kept = ("max_new_tokens", "do_sample", "sample_seed", "returned")
        plain = Settings(**{name: getattr(drawn, name) for name in kept}, eos=how.eos)
        scenario = runs.scenario.of(runs.case.replace(settings=plain, fingerprint=None))
        steered = scenario.call(**config_fields(how, _prompt(runs)))
        steered = steered.replace(extras=keywords(how, runs.scenario.vocabulary))
        if how.encoded and runs.scenario.encoder_decoder:
            steered = told(steered, PurityPlan(encoded=True), runs.scenario.model())
        return steered, runs.run(scenario.call())

    return runs.once("steered call", make)


def _prompt(runs: Runs) -> tuple[int, ...]:
    """The ids that words are told by: the first row's, or those of its decoder."""
    return (runs.scenario.decoder_start,) if runs.scenario.encoder_decoder else runs.scenario.rows[0]


def _sequence(runs: Runs, outcome: Outcome, call: Call, row: int, index: int) -> Comparison:
    """One sequence, step by step up to its end."""
    how, begun = steering_of(runs), runs.scenario.rows[row]
    start = (runs.scenario.decoder_start,) if runs.scenario.encoder_decoder else begun
    seen = () if how.encoded and runs.scenario.encoder_decoder else begun
    new = until_end(outcome.tokens(index), how.eos)
    where = f"row {row} " if len(runs.rows) > 1 else ""
    for step, token in enumerate(new):
        at = Row((*start, *new[:step]), seen, _prompt(runs), row, step, bool(call.generation_config.do_sample))
        expected, got = scores(how, outcome.logits[step][index], at), outcome.scores[step][index]
        if not expected.values.isfinite().any():
            break  # nothing is left to say: what a loop does then is no rule's
        place = f"{where}step {step}"
        found = _differs(how, got, expected, place) or _said(at, token, got, place)
        if found is not None:
            return Comparison.of(found)
    return Comparison()


def _differs(how: Steering, got: torch.Tensor, expected: Scores, place: str) -> Difference | None:
    wanted = torch.where(expected.open, got.double(), expected.values)
    if how.watermark:
        wanted = _marked(got, wanted)
    found = deviation(got, wanted)
    bound = ROUNDING * max(scale_of([wanted]), 1.0)
    if found is None or (found.kind == "values" and found.size <= bound):
        return None
    if found.kind == "values":
        at = found.index
        values = (f"{float(wanted[at]):.6g} within {bound:.1e} at index {at}", f"{float(got[at]):.6g}")
        return Difference("values", "scores", *values, place)
    return Difference(found.kind, "scores", _finite(wanted), _finite(got), place)


def _marked(got: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """With the watermark's own bias where the scores have it, for as many tokens as may have it."""
    marked = (got.double() - wanted) > WATERMARK["bias"] / 2
    most = int(WATERMARK["greenlist_ratio"] * len(wanted))
    return torch.where(marked, wanted + WATERMARK["bias"], wanted) if int(marked.sum()) <= most else wanted


def _finite(values: torch.Tensor) -> str:
    odd: Sequence[int] = (~values.isfinite()).nonzero().flatten().tolist()
    return f"{len(odd)} tokens without a finite score, {odd[:8]}"


def _said(at: Row, token: int, got: torch.Tensor, place: str) -> Difference | None:
    best = float(got[token]) > float("-inf") if at.sampled else float(got[token]) == float(got.max())
    wanted = "a token that the scores allow" if at.sampled else f"{int(got.argmax())}, which has the best score"
    return None if best else Difference("tokens", "sequences", wanted, str(token), place)
