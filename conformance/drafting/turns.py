"""The earlier calls of a case, which leave a cache that the case's own call goes on from."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.drafting.calls import Calls
from conformance.drafting.processors import Forced
from conformance.limits import time_limit
from conformance.outcome import Crash


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
    model = own.turns_model if own.scenario.media else own.scenario.model()
    whole = own.whole_inputs(before, turn)
    begin, end, changes = span(own, before, turn)
    inputs = {name: value if name in own.media_names(whole) else value[:, :end] for name, value in whole.items()}
    call = Call(
        inputs={**inputs, "input_ids": whole["input_ids"][:, begin:end]},
        generation_config=own.scenario.generation_config(**changes),
        mechanism="assisted" if "prompt_lookup_num_tokens" in changes else "prefill",
        processors=(Forced(whole["input_ids"], begin),),
        extras={} if cache is None else {upstream.cache_argument(model): cache},
        options={"cached": before, "only_new": begin > 0, **own.media_options(inputs, before)},
    )
    return upstream.cache_of(own.runs.subject.generate(model, call))


def span(own: Calls, before: int, turn: int) -> tuple[int, int, dict[str, Any]]:
    """The ids that an earlier call is given, from and to, and its changes to the case's generation config."""
    decoded = min(own.plan.decoded, turn - before - 1) if turn - before > 1 else 0
    end, begin = turn - decoded, own.left_out(before, turn)
    if end <= own.padding or (own.brings_images(before, turn) and end < own.media_span[1]):
        end, decoded = turn, 0
    changes = {"max_new_tokens": decoded + 1, "eos_token_id": None, "do_sample": False}
    return begin, end, {**changes, **_maker(own, before)}


def _maker(own: Calls, before: int) -> dict[str, Any]:
    """How the first of the earlier turns is made; the later ones are plain, so that they differ in one thing.

    With images it is plain as well: chunks that split one are a matter of their own.
    """
    if before or own.scenario.media:
        return {}
    if own.plan.made_by == "chunked":
        return {"prefill_chunk_size": 2}
    return {"prompt_lookup_num_tokens": 2} if own.plan.made_by == "lookup" and len(own.rows) == 1 else {}
