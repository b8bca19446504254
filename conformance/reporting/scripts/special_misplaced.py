# ruff: noqa: INP001
"""Decoding with parameters that have no values."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, MISPLACED, SETTINGS, make_model

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """An error that names such a parameter before any module runs; and what happens."""
    model, calls = make_model(), []
    names = [name for name, _ in model.named_parameters()]
    chosen = [names[number % len(names)] for number in MISPLACED] or names
    for name in chosen:
        place, _, leaf = name.rpartition(".")
        module = model.get_submodule(place)
        module._parameters[leaf] = torch.nn.Parameter(module._parameters[leaf].to("meta"), requires_grad=False)
    if not MISPLACED:
        model = model.to("meta")
    for module in model.modules():
        module.register_forward_pre_hook(lambda *_: calls.append(1))
    config = GenerationConfig(**{**SETTINGS, "do_sample": False, "num_return_sequences": 1})
    try:
        model.generate(**INPUTS, generation_config=config)
        got = "tokens"
    except Exception as error:  # noqa: BLE001
        clear = any(name in str(error) for name in chosen) and not calls
        got = "refused" if clear else f"{type(error).__name__}: {error}"[:200]
    return {"call": "refused"}, {"call": got}
