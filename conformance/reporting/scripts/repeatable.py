# ruff: noqa: INP001
"""The same call twice on the same objects, and once on a new model."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.leaves import leaves

ROWS = "all"
BEYOND = ("keywords", "by_model", "encoded", "unmasked", "positions", "quantized", "static", "raises")
WHOLE_OUTCOME = True


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcome of a call, twice, and those of the same call again and of the same call on a new model."""
    first, outs = make_model(), []
    for model in (first, first, make_model()):
        torch.manual_seed(SEED)
        out = model.generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS))
        outs.append(leaves({**out, "generator": torch.get_rng_state()}, "output"))
    names = ("second call", "call on a new model")
    expected = {f"{name}: {path}": text for name in names for path, text in outs[0].items()}
    return expected, {f"{n}: {path}": text for n, out in zip(names, outs[1:]) for path, text in out.items()}  # noqa: B905
