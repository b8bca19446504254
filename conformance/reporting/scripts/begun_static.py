# ruff: noqa: INP001
"""A first call that is given an empty static cache, with room for all that is to come."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SETTINGS, make_model


def begun() -> dict[str, Any]:
    """What the first call is given besides ids: the cache as `generate` makes it."""
    config = GenerationConfig(**SETTINGS, cache_implementation="static", disable_compile=True)
    catch = {"custom_generate": lambda _, ids, **made: made}  # noqa: ARG005
    made = make_model().generate(**INPUTS, generation_config=config, **catch)
    return {name: made[name] for name in ("cache", "past_key_values") if made.get(name) is not None}
