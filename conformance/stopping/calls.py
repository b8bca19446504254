"""The calls of the `stopping` family: what the plan of a case says, made real."""

from __future__ import annotations

import copy
from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.plans.stopping import FILLED
from conformance.runs import Runs
from conformance.simulation.hooks import CountingCriterion, RaisingStreamer, StatefulProcessor
from conformance.stopping_settings import own_criteria
from conformance.subjects.installed import Installed

NOTHING = ("eos_token_id", "forced_eos_token_id", "min_new_tokens", "min_length")
PLAIN: dict[str, Any] = {
    "do_sample": False,
    "num_return_sequences": 1,
    "output_attentions": False,
    "output_hidden_states": False,
    **dict.fromkeys(NOTHING),
}


def _no_word(cache: Any) -> bool:
    raise AttributeError(f"{type(cache).__name__!r} object has no attribute 'is_croppable'")


# What a caller's cache answers when it is asked whether it can be put back.
WORDS = {"cannot": property(lambda _: False), "none": property(_no_word)}


def call_of(runs: Runs, raises_at: int = 0) -> Call:
    """The call that the plan describes, with hooks and a cache of its own; the planned hook raises in that call."""
    return with_hooks(runs, with_callers_cache(runs, runs.call(**config_of(runs))), raises_at)


def with_hooks(runs: Runs, call: Call, raises_at: int = 0) -> Call:
    """The call with new hooks of the caller's, as the plan says; 0: none raises."""
    plan = runs.case.plan
    raises_in = {plan.raises: raises_at} if raises_at else {}
    processors, criteria = call.processors, call.criteria
    if plan.processor or plan.raises == "processor":
        processors = (*processors, StatefulProcessor(raises_in.get("processor", 0), steers=plan.processor))
    if plan.stop_after or plan.raises == "criterion":
        criteria = (*criteria, CountingCriterion(plan.stop_after, raises_in.get("criterion", 0)))
    streamer = RaisingStreamer(raises_at) if "streamer" in raises_in else call.streamer
    return call.replace(processors=processors, criteria=criteria, streamer=streamer)


def config_of(runs: Runs) -> dict[str, Any]:
    """What the plan changes in the generation config."""
    plan = runs.case.plan
    changes: dict[str, Any] = plan.changes(runs.scenario.vocabulary)
    made_static = plan.static and not plan.passed_in and not plan.uncached
    return changes | (upstream.static_cache_settings() if made_static else {})


def with_callers_cache(runs: Runs, call: Call) -> Call:
    """The call with the cache that the plan has the caller pass, fresh or filled by a call before.

    As it is where the plan has none, or where `generate` makes none for this type, so that none can be made as it
    would.
    """
    plan = runs.case.plan
    kept = runs.once("caller's cache", lambda: _callers_cache(runs, call)) if plan.passed_in else None
    if kept is None:
        runs.events |= {"cache: the caller's cannot be made"} if plan.passed_in else set()
        return call
    runs.events.add(f"cache: {plan.cache}")
    inputs, cache = copy.deepcopy(kept)
    if plan.recording:
        upstream.record_past(cache)
    name = upstream.cache_argument(runs.scenario.pristine)
    return from_here(runs, call, inputs).replace(extras={**call.extras, name: cache})


def from_here(runs: Runs, call: Call, inputs: dict[str, Any]) -> Call:
    """The call on inputs that may begin later than the case's: limits and criteria count from where these end."""
    scenario = runs.scenario
    width = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    if width == scenario.width():
        return call.replace(inputs=inputs)
    criteria = own_criteria(runs.case.settings, runs.rows, width, scenario.vocabulary)
    config = scenario.generation_config(width, **config_of(runs))
    return call.replace(inputs=inputs, generation_config=config, criteria=criteria)


Kept = tuple[dict[str, torch.Tensor], Any]


def _callers_cache(runs: Runs, call: Call) -> Kept | None:
    plan = runs.case.plan
    kept = _cache(runs, call, places(runs, call), plan.static)
    if kept is not None and plan.words in WORDS:
        kind = type(kept[1])
        kept[1].__class__ = type(kind.__name__, (kind,), {"is_croppable": WORDS[plan.words]})
    return kept


def places(runs: Runs, call: Call) -> int:
    """For how many new tokens the caller's cache has a place, where it is of fixed size."""
    plan = runs.case.plan
    if plan.static and plan.room is not None:
        return _steps_needed(runs, call) + plan.room
    return int(runs.case.settings.max_new_tokens)


def _steps_needed(runs: Runs, call: Call) -> int:
    """The steps of this call with a growing cache, as far as it has nothing of the caller's that changes them."""
    kept = _cache(runs, call, runs.case.settings.max_new_tokens, static=False)
    if kept is None:
        return 1
    inputs, cache = kept
    name = upstream.cache_argument(runs.scenario.pristine)
    outcome = runs.run(with_hooks(runs, from_here(runs, call, inputs).replace(extras={name: cache})))
    return max(1, outcome.steps)


def _cache(runs: Runs, call: Call, steps: int, static: bool) -> Kept | None:
    """Inputs and a cache with a place for all that `steps` new tokens feed."""
    filled = FILLED if runs.case.plan.cache == "filled" else 0
    settings = upstream.static_cache_settings() if static else {}
    room = runs.call(**PLAIN, **settings, max_new_tokens=filled + steps)
    try:
        cache = upstream.handed_to_loop(runs.scenario.model(), room.arguments()).cache
        if cache is None:
            return None
        cache = upstream.quantised_exactly(cache) if runs.case.plan.quantised else cache
        return _filled(runs, call, cache, filled) if filled else (call.inputs, cache)
    except Exception:  # noqa: BLE001 - what does not work without deferral is no matter here
        return None


def _filled(runs: Runs, call: Call, cache: Any, steps: int) -> Kept:
    """The cache after a call of so many new tokens, and the inputs of the call that goes on."""
    name = upstream.cache_argument(runs.scenario.pristine)
    first = runs.call(**PLAIN, max_new_tokens=steps).replace(extras={name: cache}, criteria=())
    with torch.no_grad():
        sequences = Installed().generate(runs.shareable_model(), first).sequences
    return following(call.inputs, sequences, runs.scenario.encoder_decoder), cache


def following(inputs: dict[str, Any], sequences: torch.Tensor, encoder_decoder: bool) -> dict[str, Any]:
    """The inputs of a call that goes on after `sequences`, (rows or several times as many, length), all ids given."""
    times = sequences.shape[0] // next(iter(inputs.values())).shape[0]
    repeated = {name: tensor.repeat_interleave(times, dim=0) for name, tensor in inputs.items()}
    ids, mask = ("decoder_input_ids", "decoder_attention_mask") if encoder_decoder else ("input_ids", "attention_mask")
    repeated[ids] = sequences.clone()
    if mask in repeated:
        new = sequences.shape[1] - repeated[mask].shape[1]
        repeated[mask] = torch.nn.functional.pad(repeated[mask], (0, new), value=1)
    return repeated
