"""The ways in which a caller can tell `generate` the same thing: what else than tensors the caller then owns."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.plans.purity import PurityPlan

QUANTIZED = {"backend": "quanto", "nbits": 4}  # whatever the backend is, a stand-in that loses nothing takes its place


def told(call: Call, plan: PurityPlan, model: Any, takes_positions: bool = False) -> Call:
    """The call as the plan has it told: the same tokens are asked for. The encoder's output is the model's own.

    `by_model` changes the generation config of the model. `takes_positions`: its type takes positions from a caller.
    """
    if plan.static and upstream.has_default_cache(model):
        for name, value in upstream.static_cache_settings().items():
            setattr(call.generation_config, name, value)
    if plan.positions and takes_positions:
        call = _with_positions(call)
    if plan.encoded:
        call = _encoded(call, model)
    if plan.seen:
        call = _seen(call, model)
    if plan.unmasked and bool(call.inputs["attention_mask"].all()):
        call = call.replace(inputs={name: value for name, value in call.inputs.items() if name != "attention_mask"})
    if plan.criterion and ends_by_token_alone(call.generation_config):
        call = _ended_by_criterion(call)
    if plan.quantized:
        call = call.replace(extras={**call.extras, "cache_implementation": "quantized", "cache_config": {**QUANTIZED}})
    if plan.keywords:
        config = call.generation_config
        plain = type(config)()
        fields = {name: value for name, value in vars(config).items() if value != getattr(plain, name, None)}
        call = call.replace(generation_config=plain, extras={**fields, **call.extras})
    return _by_model(call, model) if plan.by_model else call


def ends_by_token_alone(config: Any) -> bool:
    """Whether there are end tokens, and nothing in the settings but the end of a row is about them.

    A pad token that is not told is derived from them.
    """
    about = ("min_new_tokens", "min_length", "forced_eos_token_id", "bad_words_ids")
    return (
        bool(config.eos_token_id)
        and config.pad_token_id is not None
        and not any(getattr(config, name, None) for name in about)
    )


def _ended_by_criterion(call: Call) -> Call:
    """A row is filled up after its end wherever a criterion knows an end token, whoever made that."""
    from transformers.generation.stopping_criteria import EosTokenCriteria

    ends = EosTokenCriteria(call.generation_config.eos_token_id)
    call.generation_config.eos_token_id = None
    return call.replace(criteria=(*call.criteria, ends))


def _by_model(call: Call, model: Any) -> Call:
    """The call's settings as the model's own config, beside what that tells already: `generate` fills it in as well."""
    for name, value in vars(model.generation_config).items():
        if getattr(call.generation_config, name, None) is None:
            setattr(call.generation_config, name, value)
    model.generation_config = call.generation_config
    return call.replace(generation_config=None)


def _with_positions(call: Call) -> Call:
    """Each token's place in its own row, shape (rows, width): what is not told is counted from the mask like this."""
    counted = (call.inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    return call.replace(inputs={**call.inputs, "position_ids": counted})


def _encoded(call: Call, model: Any) -> Call:
    inputs = dict(call.inputs)
    with torch.no_grad():
        ids, mask = inputs.pop("input_ids"), inputs["attention_mask"]
        outputs = model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True)
    return call.replace(inputs=inputs, extras={**call.extras, "encoder_outputs": outputs})


def _seen(call: Call, model: Any) -> Call:
    """With what the model's own tower makes of the images in their place, where the release and the type take that."""
    if not upstream.takes_encoded_images(model) or "pixel_values" not in call.inputs:
        return call
    with torch.no_grad():
        encoded = upstream.encoded_images(model, call.inputs)
    inputs = {name: value for name, value in call.inputs.items() if name != "pixel_values"}
    return call.replace(inputs=inputs, extras={**call.extras, upstream.ENCODED_IMAGES: encoded})
