# ruff: noqa: INP001
"""The same call twice on the same objects, and once on a new model."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, make_model
from conformance.reporting.scripts.leaves import equal, leaves


def main() -> None:
    """Make the same call three times: twice on the same model and inputs, once on new ones."""

    def call(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        torch.manual_seed(SEED)
        out = model.generate(**inputs, generation_config=GenerationConfig(**SETTINGS))
        return leaves([dict(out), torch.get_rng_state()], "output")

    model, inputs = make_model(), batch(ROWS)
    first = call(model, inputs)
    equal("the second call", first, call(model, inputs))
    equal("the call on a new model", first, call(make_model(), batch(ROWS)))
