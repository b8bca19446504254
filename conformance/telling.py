"""The ways in which a caller can tell `generate` the same thing: what else than tensors the caller then owns."""

from __future__ import annotations

from typing import Any

import torch

from conformance.call import Call
from conformance.plans.purity import PurityPlan

QUANTIZED = {"backend": "quanto", "nbits": 4}  # whatever the backend is, a stand-in that loses nothing takes its place


def told(call: Call, plan: PurityPlan, model: Any) -> Call:
    """The call as the plan has it told: the same tokens are asked for. The encoder's output is the model's own."""
    if plan.encoded:
        call = _encoded(call, model)
    if plan.quantized:
        call = call.replace(extras={**call.extras, "cache_implementation": "quantized", "cache_config": {**QUANTIZED}})
    if plan.keywords:
        config = call.generation_config
        plain = type(config)()
        fields = {name: value for name, value in vars(config).items() if value != getattr(plain, name, None)}
        call = call.replace(generation_config=plain, extras={**fields, **call.extras})
    return call


def _encoded(call: Call, model: Any) -> Call:
    inputs = dict(call.inputs)
    with torch.no_grad():
        ids, mask = inputs.pop("input_ids"), inputs["attention_mask"]
        outputs = model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True)
    return call.replace(inputs=inputs, extras={**call.extras, "encoder_outputs": outputs})
