"""Calls of `generate` with ids in a caller's form, and the models for them."""

from __future__ import annotations

import threading
from typing import Any

import torch

from conformance.call import Call
from conformance.plans.special_tokens import Id
from conformance.runs import Runs
from conformance.special_tokens.preparing import with_ids


def spoken_ids(runs: Runs) -> dict[str, Id]:
    """The ids to decode with, in the plan's forms."""
    spoken: dict[str, Id] = runs.case.plan.spoken(runs.case.settings.eos, runs.scenario.vocabulary)
    return spoken


def call_with(runs: Runs, ids: dict[str, Id], mode: str | None = None, by_keyword: bool = False) -> Call:
    """The case's call with these ids, greedy in the plan's mode: of its first row where drafts are verified."""
    plan, mode = runs.case.plan, mode or runs.case.plan.mode
    beams = {"num_beams": 2} if mode == "beams" else {}
    rows = [0] if mode in ("lookup", "assisted") else None
    call = runs.call(rows, do_sample=False, num_return_sequences=1, **beams)
    extras: dict[str, Any] = {"prompt_lookup_num_tokens": plan.draft} if mode == "lookup" else {}
    if mode == "assisted":
        extras["assistant_model"] = _assistant(runs)
    return told_ids(call.replace(mechanism="special_tokens", criteria=(), extras=extras), ids, by_keyword)


def told_ids(call: Call, ids: dict[str, Id], by_keyword: bool) -> Call:
    """The call with these ids in its generation config, or told by keyword."""
    with_ids(call.generation_config, {name: Id() for name in ids} if by_keyword else ids)
    values = {f"{name}_token_id": one.value() for name, one in ids.items()} if by_keyword else {}
    return call.replace(extras={**call.extras, **{name: value for name, value in values.items() if value is not None}})


def _assistant(runs: Runs) -> Any:
    model = runs.scenario.model(noise=(1, 0.05))
    config = model.generation_config
    config.num_assistant_tokens, config.num_assistant_tokens_schedule = runs.case.plan.draft, "constant"
    config.assistant_confidence_threshold = 0.0
    return model


def spoken_call(runs: Runs, mode: str | None = None) -> Call:
    """The call with the ids in the plan's forms, told as the plan says."""
    return call_with(runs, spoken_ids(runs), mode, by_keyword=runs.case.plan.keywords)


def model_without_pad(runs: Runs) -> Any:
    """A new model whose own generation config has no pad token to fall back to."""
    model = runs.scenario.model()
    model.generation_config.pad_token_id = None
    return model


def misplaced_model(runs: Runs) -> tuple[Any, list[str]]:
    """A new model with the plan's parameters on `meta`, and their names; all of them where the plan names none."""
    model = runs.scenario.model()
    names = [name for name, _ in model.named_parameters()]
    chosen = sorted({names[number % len(names)] for number in runs.case.plan.misplaced})
    if not chosen:
        return model.to("meta"), names
    for name in chosen:
        place, _, leaf = name.rpartition(".")
        module = model.get_submodule(place)
        module._parameters[leaf] = torch.nn.Parameter(module._parameters[leaf].to("meta"), requires_grad=False)
    return model, chosen


def in_threads(runs: Runs, call: Call, count: int) -> list[Any]:
    """Sequences of as many threads, each with models of its own, of one call with one generation config; or errors."""
    own = [spoken_call(runs).replace(generation_config=call.generation_config) for _ in range(count)]
    models = [model_without_pad(runs) for _ in own]
    results: list[Any] = [None] * count

    def work(number: int) -> None:
        with torch.no_grad():
            try:
                results[number] = runs.subject.generate(models[number], own[number]).sequences.tolist()
            except Exception as error:  # noqa: BLE001 - compared with what the call gives by itself
                results[number] = f"{type(error).__name__}: {error}"[:200]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
