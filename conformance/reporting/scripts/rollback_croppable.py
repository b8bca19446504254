# ruff: noqa: INP001
"""What a static cache says of being croppable, on a new model and on one that made a longer call before."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import EARLIER, INPUTS, NAME, PREPARED, make_model

ROWS = "all"


def says_croppable(model: Any, more: int) -> str:
    kept, config = [], GenerationConfig(**PREPARED)
    config.max_new_tokens += more
    keep = {"custom_generate": lambda _, ids, **given: kept.append(given[NAME]) or ids}
    model.generate(**INPUTS, generation_config=config, **keep)
    return str(kept[0].is_croppable)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Of the same call on both models."""
    used = make_model()
    says_croppable(used, EARLIER)
    return {"is_croppable": says_croppable(make_model(), 0)}, {"is_croppable": says_croppable(used, 0)}
