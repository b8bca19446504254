# ruff: noqa: INP001
"""Whether the caller's cache records past states after a hook has raised: before the call, and after it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, NAME, SETTINGS, make_model
from conformance.reporting.scripts.hook import hooked
from conformance.reporting.scripts.late import deferred

ROWS = "all"
UNSEEN = ("error", "inputs", "generation_config", "model.", "keywords", "calls", "ends", "rng", "left")
INSTEAD = {"next": "deferred_after_error", "step too many": "deferred_hooked"}


def recording(keywords: dict[str, Any]) -> dict[str, bool]:
    """Whether each layer of the cache that is passed records."""
    layers = getattr(getattr(cache := keywords.get(NAME), "self_attention_cache", cache), "layers", ())
    return {f"layer {n} records past states": getattr(layer, "record_past", False) for n, layer in enumerate(layers)}


def texts() -> tuple[dict[str, bool], dict[str, bool]]:
    """What the layers say before the call, and after it."""
    model = make_model()
    keywords = given(model)
    before = recording(keywords)
    with deferred(), suppress(ValueError):
        model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES), **hooked())
    return before, recording(keywords)
