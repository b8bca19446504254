"""Forwards that a user makes without `generate`, which tells a model more than most of them would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance import upstream
from conformance.checks.cached import CACHED
from conformance.clock import MODEL_CODE
from conformance.compare import compare_steps, crash_difference
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison

NO_CACHE = "the forward returns no cache"


@check(CACHED, stands_on=["cached-matches-recomputed"])
@applies("cached decoding of this type is another function by design", lambda runs: "not_incremental" not in runs.facts)
@applies("this type's own preparation is part of what it decodes with", lambda runs: not runs.oracle.prepared)
@applies("one forward over all tokens is another function", lambda runs: not runs.oracle.stepwise(len(_ids(runs))))
@applies("the row holds the type's padding token, which positions may leave out", lambda runs: _unpadded(runs))
@applies("the prompt holds images, of which such a forward knows nothing", lambda runs: not runs.case.prompt.images)
@applies("the first row has one token", lambda runs: len(runs.scenario.rows[0]) > 1)
def forward_counts_from_the_cache(runs: Runs) -> Comparison:
    """A forward of one more token goes on where its cache ends, also where it is told no positions and no mask.

    `generate` always tells both; who calls the model tells neither, and gets what one forward over all tokens gives.
    """
    whole, split = (_made(runs, make) for make in (_at_once, _in_two))
    if isinstance(whole, Crash) or whole is None:
        return Comparison(not_applicable="one forward over all tokens raises")
    if split is None:
        return Comparison(not_applicable=NO_CACHE)
    if isinstance(split, Crash):
        name = upstream.refusal(split.type, split.message)
        if name is not None:
            return Comparison(not_applicable=f"refused as documented: {name}")
        return crash_difference(split, "one forward over all tokens works")
    return compare_steps("logits", [split], [whole], runs.noise(0, [0]), "the last token, ", runs.bound)


@check(CACHED, stands_on=["cached-matches-recomputed"])
@applies("this type's own preparation is part of what it decodes with", lambda runs: not runs.oracle.prepared)
@applies("one forward over all tokens is another function", lambda runs: not runs.oracle.stepwise(len(_ids(runs))))
@applies("the row holds the type's padding token, which positions may leave out", lambda runs: _unpadded(runs))
@applies("the prompt holds images, of which such a forward knows nothing", lambda runs: not runs.case.prompt.images)
def forward_matches_generate(runs: Runs) -> Comparison:
    """A forward over the prompt that is told nothing but its ids says what `generate` begins with.

    `generate` makes positions and a mask and tells both: they are those that the model counts by itself.
    """
    whole = _made(runs, _at_once)
    if isinstance(whole, Crash) or whole is None:
        return Comparison(not_applicable="a forward that is told nothing but ids raises")
    expected = list(runs.oracle.logits(0, [0]))
    return compare_steps("logits", [whole], expected, runs.noise(0, [0]), "the last token, ", runs.bound)


def _unpadded(runs: Runs) -> bool:
    return getattr(runs.scenario.config.get_text_config(decoder=True), "pad_token_id", None) not in _ids(runs)


def _ids(runs: Runs) -> tuple[int, ...]:
    return runs.scenario.rows[0]


def _made(runs: Runs, make: Callable[[Any, torch.Tensor], torch.Tensor | None]) -> torch.Tensor | Crash | None:
    model, ids = runs.shareable_model(), torch.tensor([_ids(runs)])
    with torch.no_grad(), MODEL_CODE.running():
        try:
            with time_limit():
                return make(model, ids)
        except Exception as error:  # noqa: BLE001 - the model under test may raise anything
            return Crash.of(error)


def _at_once(model: Any, ids: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model(input_ids=ids, use_cache=False).logits
    return logits[0, -1]


def _in_two(model: Any, ids: torch.Tensor) -> torch.Tensor | None:
    cache = upstream.cache_of(model(input_ids=ids[:, :-1], use_cache=True))
    if cache is None:
        return None
    given = {upstream.cache_argument(model): cache, "use_cache": True}
    logits: torch.Tensor = model(input_ids=ids[:, -1:], **given).logits
    return logits[0, -1]
