# ruff: noqa: INP001
"""What a call changes beside what it returns."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, make_model
from conformance.reporting.scripts.leaves import equal, leaves


def main() -> None:
    """Look at everything that the caller owns before and after a call, and at the attributes of the modules."""
    model, inputs, config = make_model(), batch(ROWS), GenerationConfig(**SETTINGS)
    kept = ("_parameters", "_modules", "training", "config", "generation_config", "_previous_max_cache_length")

    def look() -> dict[str, Any]:
        owned = {"inputs": inputs, "generation_config": config, "model.config": model.config}
        owned["model.generation_config"] = model.generation_config
        for name, module in model.named_modules():
            own = {k: v for k, v in vars(module).items() if k not in kept and not k.endswith("_hooks")}
            owned[f"model.{name}"] = own
        return {k: v for name, value in owned.items() for k, v in leaves(value, name).items()}

    before = look()
    torch.manual_seed(SEED)
    model.generate(**inputs, generation_config=config)
    equal("as before the call", before, look())
