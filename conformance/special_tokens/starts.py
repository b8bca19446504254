"""Calls that leave out what a decoding starts with, and the same calls that pass it."""

from __future__ import annotations

from typing import Any

import torch

from conformance.call import Call
from conformance.plans.special_tokens import Id, plainly
from conformance.runs import Runs
from conformance.special_tokens.calls import spoken_ids, told_ids


def starting(runs: Runs) -> tuple[dict[str, Id], tuple[int, ...]]:
    """The ids that start the case's decoding in the plan's forms, and the token that each row starts with."""
    found: tuple[dict[str, Id], tuple[int, ...]] = runs.case.plan.starting(
        len(runs.rows), runs.scenario.vocabulary, runs.scenario.encoder_decoder
    )
    return found


def left_out(runs: Runs) -> Call:
    """The call without what the ids stand for: the prompt, or the first token of the decoder."""
    return told_ids(_call(runs, _inputs(runs)), starting(runs)[0], runs.case.plan.keywords)


def passed(runs: Runs) -> Call:
    """The same call with those tokens passed as ids."""
    tokens = starting(runs)[1]
    name = "decoder_input_ids" if runs.scenario.encoder_decoder else "input_ids"
    call = _call(runs, {**_inputs(runs), name: torch.tensor(tokens)[:, None]})
    # The start token is the first row's: `generate` puts one before tokens that none of the rows starts with.
    return told_ids(call, {"decoder_start": Id(form="number", values=tokens[:1])}, by_keyword=False)


def _inputs(runs: Runs) -> dict[str, Any]:
    """For an encoder its prompt; without one nothing, not even a mask."""
    if not runs.scenario.encoder_decoder:
        return {}
    return {name: value for name, value in runs.scenario.inputs().items() if not name.startswith("decoder_")}


def _call(runs: Runs, inputs: dict[str, Any]) -> Call:
    """Greedy decoding, or beams where the plan has those, after one token."""
    beams = {"num_beams": 2} if runs.case.plan.mode == "beams" else {}
    config = runs.scenario.generation_config(1, do_sample=False, num_return_sequences=1, **beams)
    return told_ids(Call(inputs, config, mechanism="special_tokens"), plainly(spoken_ids(runs)), by_keyword=False)


def model_without_starts(runs: Runs) -> Any:
    """A new model whose own generation config has none of these tokens to fall back to."""
    model = runs.scenario.model()
    for name in ("bos", "decoder_start"):
        setattr(model.generation_config, f"{name}_token_id", None)
    return model
