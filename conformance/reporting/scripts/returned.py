# ruff: noqa: INP001
"""What a call returned, before and after another call on the same model."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.given import given
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.told import told

ROWS = "all"
BEYOND = ("quantized", "raises")
WHOLE_OUTCOME = True


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """All that the first call returned, as it returned it and as it is after a call on other inputs."""
    model = make_model()
    call = {**given(model), **told(model)}
    torch.manual_seed(SEED)
    out = model.generate(**call)
    before = leaves(out, "returned")
    other = {name: tensor.flip(0, 1) for name, tensor in INPUTS.items()}
    if any(tensor.is_floating_point() for tensor in other.values()):  # text alone after images or sound
        ids = torch.arange(1, 4).expand(len(INPUTS["input_ids"]), -1)
        other = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    model.generate(**other, generation_config=GenerationConfig(**SETTINGS | CHANGES | {"max_new_tokens": 1}))
    return before, leaves(out, "returned")
