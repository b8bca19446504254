# ruff: noqa: INP001
"""The generation config that the caller passes, with special tokens in it."""

from __future__ import annotations

from contextlib import suppress

from conformance.reporting.scripts.frame import BY_KEYWORD, DRAFT, INPUTS, SPOKEN, make_model
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.speaking import speaking

ROWS = "all"
UNSEEN = ("sequences", "model", "assistant")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """All that is in the config, before and after a call."""
    model, (config, extras) = make_model(), speaking(SPOKEN, BY_KEYWORD)
    rows = 1 if DRAFT or "prompt_lookup_num_tokens" in extras else None
    before = leaves(vars(config), "")
    with suppress(Exception):
        model.generate(**{name: value[:rows] for name, value in INPUTS.items()}, generation_config=config, **extras)
    return before, leaves(vars(config), "")
