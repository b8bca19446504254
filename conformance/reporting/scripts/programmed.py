# ruff: noqa: INP001
"""A cache as `generate` prepares it, and what a table of forwards and calls makes of it."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.fed import fed
from conformance.reporting.scripts.frame import INPUTS, NAME, PREPARED, make_model


@torch.no_grad()
def programmed(table: list[tuple[Any, ...]]) -> tuple[Any, Any]:
    """The cache after the last entry, and the outputs of the last forward."""
    model, out = make_model(), None
    kept: dict[str, Any] = {}
    keep = {"custom_generate": lambda _, ids, **given: (kept.setdefault("cache", given.get(NAME)), ids)[1]}
    model.generate(**INPUTS, generation_config=GenerationConfig(**PREPARED), **keep)
    cache = kept["cache"]
    for name, *given in table:
        if name == "feed":
            out = fed(model, cache, *given)
            cache = out.get(NAME, cache)
        elif name == "early_initialization":
            getattr(cache, "self_attention_cache", cache).early_initialization(*given, model.dtype, model.device)
        else:
            getattr(cache, name)(*(torch.tensor(v) if isinstance(v, list) else v for v in given))
    return cache, out
