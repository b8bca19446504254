# ruff: noqa: INP001
"""How often each model gets the images or the sound of a call."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.frame import CHANGES, INPUTS, PLACEHOLDERS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops
from conformance.reporting.scripts.uses import uses

ROWS = "running"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """How often each model has to get them, and does."""
    model = make_model()
    keywords = arriving(model) | helped(model) | stops()
    models = {"main": model, **({"assistant": keywords["assistant_model"]} if "assistant_model" in keywords else {})}
    given = {tensor.data_ptr() for tensor in INPUTS.values() if tensor.is_floating_point()}
    times = {who: uses(one, given, PLACEHOLDERS) for who, one in models.items()}
    torch.manual_seed(SEED)
    model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    return dict.fromkeys(times, "1 times"), {who: f"{sum(its):.4g} times" for who, its in times.items() if its}
