"""Decoders that start with several tokens of the caller's, where others are given one."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.checks.cached import CACHED
from conformance.compare import Noise, compare_steps, crash_difference
from conformance.outcome import Outcome
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

STEPS = 3  # new tokens: the one after the prefill, and two that go on from the cache
PLAIN: dict[str, Any] = {"max_new_tokens": STEPS, "eos_token_id": None, "do_sample": False, "num_return_sequences": 1}
NAMES = ("decoder_input_ids", "decoder_attention_mask")


def _has_several(runs: Runs) -> bool:
    return bool(getattr(runs.case.plan, "continuation", ()))


@check(
    CACHED,
    stands_on=["cached-matches-recomputed", "padded-row-matches-alone"],
    script="decoder_starts",
)
@applies("the plan has no tokens to start with", _has_several)
@applies("the type has no decoder apart", lambda runs: runs.scenario.encoder_decoder)
def decoder_starts_with_several_tokens(runs: Runs) -> Comparison:
    """A decoder that is given several tokens to start with says what it says when they are recomputed with the rest.

    Task prompts, language codes and the first half of a text reach an encoder-decoder model so.
    """
    return _against_the_oracle(runs, _started(runs), "recomputing the row works")


@check(
    CACHED,
    stands_on=[
        "cached-matches-recomputed",
        "padded-row-matches-alone",
        "static-matches-dynamic",
        "decoder-starts-with-several-tokens",
    ],
    script="decoder_starts_static",
)
@applies("generate does not choose the cache of this type", lambda runs: runs.has_default_cache)
@applies("the plan has no tokens to start with", _has_several)
@applies("the type has no decoder apart", lambda runs: runs.scenario.encoder_decoder)
def static_decoder_starts_with_several_tokens(runs: Runs) -> Comparison:
    """The same with a static cache, whose mask is as wide as the cache and not as what is in it."""
    static = _started(runs, **upstream.static_cache_settings())
    return _against_the_oracle(runs, static, "recomputing the row works")


def _started(runs: Runs, **config: Any) -> Outcome:
    """All rows, each decoder starting with its start token and the plan's continuation."""
    call = runs.call(**PLAIN, **config)
    start = call.inputs["decoder_input_ids"]
    more = torch.tensor([list(runs.case.plan.continuation)]).expand(len(start), -1)
    ids = torch.cat([start, more], dim=1)
    starts = {name: ids if name == NAMES[0] else torch.ones_like(ids) for name in NAMES if name in call.inputs}
    return runs.run(call.replace(inputs={**call.inputs, **starts}, criteria=()))


def _against_the_oracle(runs: Runs, outcome: Outcome, beside: str) -> Comparison:
    given = list(runs.case.plan.continuation)
    if outcome.crash:
        runs.oracle.logits(0, [*given, 0])  # only where recomputing works is a crash a difference
        return crash_difference(outcome.crash, beside)
    if len(outcome.logits) != STEPS:
        return Comparison.of(Difference("length", "logits", f"{STEPS} steps", str(len(outcome.logits))))
    result = Comparison()
    for row in runs.rows:
        tokens = [*given, *outcome.tokens(row)]
        expected, noise = list(runs.oracle.logits(row, tokens)[len(given) :]), runs.noise(row, tokens)
        got = [step[row] for step in outcome.logits]
        where = f"row {row} " if len(runs.rows) > 1 else ""
        result += compare_steps("logits", got, expected, _later(noise, len(given)), where, runs.bound)
    return result


def _later(noise: Noise, by: int) -> Noise:
    return lambda step: noise(step + by)
