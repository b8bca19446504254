"""The earlier calls of a case, which leave a cache that the case's own call goes on from."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.drafting.assistants import assistant
from conformance.drafting.calls import Calls
from conformance.drafting.processors import Forced
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.plans.prefill import PrefillPlan

EARLIER = PrefillPlan(drafter="same", most=2)  # what drafts in an earlier call


class FirstTurnRaised(Crash):
    """The call that makes the cache raises: nothing is continued."""


def earlier_turns(own: Calls) -> Any:
    """The cache that the earlier turns leave; or the Crash of one of them."""
    cache, before = None, 0
    with torch.no_grad(), MODEL_CODE.running():
        for turn in own.turns:
            try:
                with time_limit():
                    cache = _turn(own, cache, before, turn)
            except Exception as error:  # noqa: BLE001 - whatever a subject raises is its outcome
                crash = Crash.of(error)
                return crash if before else FirstTurnRaised(**vars(crash))
            before = turn
    return cache


def _turn(own: Calls, cache: Any, before: int, turn: int) -> Any:
    """One earlier call, after which the cache holds the first `turn` positions of the prompt."""
    if before:
        return _left_by(own, cache, before, turn, "plain")
    try:
        return _left_by(own, _callers_cache(own), before, turn, maker(own))
    except Exception as error:
        if upstream.refusal(type(error).__name__, str(error)) is None:
            raise
    return _left_by(own, _callers_cache(own), before, turn, "plain")  # a mode that is refused leaves no cache


def maker(own: Calls) -> str:
    """How the first of the earlier turns decodes; plainly with images: chunks that split one are another matter."""
    return "plain" if own.scenario.media else str(own.plan.made_by)


def _callers_cache(own: Calls) -> Any:
    """An empty static cache with room for all that is to come, where the plan wants one and the type takes it."""
    if not own.plan.static or not own.runs.has_default_cache:
        return None
    model = own.scenario.model()
    config = own.scenario.generation_config(**upstream.static_cache_settings())
    return upstream.handed_to_loop(model, Call(own.scenario.inputs(own.rows), config).arguments()).cache


def _left_by(own: Calls, cache: Any, before: int, turn: int, mode: str) -> Any:
    model = own.turns_model if own.scenario.media else own.scenario.model()
    whole = own.whole_inputs(before, turn)
    begin, end, changes = span(own, before, turn, mode)
    inputs = {name: value if name in own.media_names(whole) else value[:, :end] for name, value in whole.items()}
    extras = {} if cache is None else {upstream.cache_argument(model): cache}
    if mode == "assisted" and len(own.rows) == 1:
        extras["assistant_model"] = assistant(own.scenario, EARLIER)
    call = Call(
        inputs={**inputs, "input_ids": whole["input_ids"][:, begin:end]},
        generation_config=own.scenario.generation_config(**changes, disable_compile=True),
        mechanism="assisted" if mode in ("lookup", "assisted") else "prefill",
        processors=(Forced(whole["input_ids"], begin),),
        extras=extras,
        options={"cached": before, "only_new": begin > 0, **own.media_options(inputs, before)},
    )
    return upstream.cache_of(own.runs.subject.generate(model, call))


def span(own: Calls, before: int, turn: int, mode: str | None = None) -> tuple[int, int, dict[str, Any]]:
    """The ids that an earlier call is given, from and to, and its changes to the case's generation config.

    mode: how it decodes; the plan's own for the first of them, while the later ones are plain, so that they differ in
    one thing.
    """
    mode = mode or ("plain" if before else maker(own))
    decoded = min(own.plan.decoded, turn - before - 1) if turn - before > 1 else 0
    end, begin = turn - decoded, own.left_out(before, turn)
    if end <= own.padding or (own.brings_images(before, turn) and end < own.media_span[1]):
        end, decoded = turn, 0
    changes = {"max_new_tokens": decoded + 1, "eos_token_id": None, "do_sample": False}
    if mode == "chunked":
        changes["prefill_chunk_size"] = 2
    if mode == "lookup" and len(own.rows) == 1:
        changes["prompt_lookup_num_tokens"] = 2
    return begin, end, changes
