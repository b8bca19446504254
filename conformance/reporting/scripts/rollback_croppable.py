# ruff: noqa: INP001
"""What a static cache says of being croppable, on a new model and on one that made a longer call before."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import COUNTS, INPUTS, NAME, PREPARED, make_model


def says_croppable(model: Any, count: int) -> str:
    """What the cache says that a call for so many tokens prepares."""
    kept: dict[str, Any] = {}
    config = GenerationConfig(**PREPARED | {"max_new_tokens": count})
    keep = {"custom_generate": lambda _, ids, **given: (kept.setdefault("cache", given[NAME]), ids)[1]}
    model.generate(**INPUTS, generation_config=config, **keep)
    return str(kept["cache"].is_croppable)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Of the short call on both models."""
    used = make_model()
    says_croppable(used, COUNTS[0])
    expected, got = (says_croppable(model, COUNTS[1]) for model in (make_model(), used))
    return {"is_croppable": expected}, {"is_croppable": got}
