# ruff: noqa: INP001
"""A caller that passes an empty cache, made as `generate` makes one, and changed by the caller."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CACHE, CHANGES, INPUTS, NAME, SETTINGS
from conformance.reporting.scripts.prepared import prepared


def given(model: Any) -> dict[str, Any]:
    """What `generate` is given."""
    made, config = dict[str, object](), GenerationConfig(**SETTINGS | CHANGES | CACHE)
    model.generate(**INPUTS, generation_config=config, custom_generate=lambda _, ids, **new: (made.update(new), ids)[1])
    kept = (made.get(name) for name in ("cache", "past_key_values", "cache_params"))
    return INPUTS | {NAME: next((prepared(cache) for cache in kept if cache is not None), None)}
