# ruff: noqa: INP001
"""A call of `generate` with special tokens in a caller's form."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import DRAFT, EXTRAS, SETTINGS, make_model


def speaking(ids: dict[str, Any], by_keyword: bool) -> tuple[Any, dict[str, Any]]:
    """The generation config with these ids in it, or without where keywords say them, and the other keywords."""
    config, extras = GenerationConfig(**{**SETTINGS, "do_sample": False, "num_return_sequences": 1}), dict(EXTRAS)
    for name, value in ids.items():
        setattr(config, name, None if by_keyword else value)
        if by_keyword and value is not None:
            extras[name] = value
    if DRAFT:
        extras["assistant_model"] = assistant = make_model()
        assistant.generation_config.num_assistant_tokens = DRAFT
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
    return config, extras
