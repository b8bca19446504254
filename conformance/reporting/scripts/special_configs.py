# ruff: noqa: INP001
"""The generation config that the caller passes, with special tokens in it."""

from __future__ import annotations

from contextlib import suppress

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import BY_KEYWORD, DRAFT, EXTRAS, INPUTS, SETTINGS, SPOKEN, make_model
from conformance.reporting.scripts.leaves import leaves

ROWS = "all"
UNSEEN = ("sequences",)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """All that is in the config, before and after a call."""
    model, config = make_model(), GenerationConfig(**{**SETTINGS, "do_sample": False, "num_return_sequences": 1})
    extras = dict(EXTRAS)
    for name, value in SPOKEN.items():
        setattr(config, name, None if BY_KEYWORD else value)
        if BY_KEYWORD and value is not None:
            extras[name] = value
    if DRAFT:
        extras["assistant_model"] = assistant = make_model()
        assistant.generation_config.num_assistant_tokens = DRAFT
    rows = 1 if DRAFT or "prompt_lookup_num_tokens" in extras else None
    before = leaves(vars(config), "")
    with suppress(Exception):
        model.generate(**{name: value[:rows] for name, value in INPUTS.items()}, generation_config=config, **extras)
    return before, leaves(vars(config), "")
