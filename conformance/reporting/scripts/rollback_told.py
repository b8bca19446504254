# ruff: noqa: INP001
"""The lengths and mask sizes that layers tell after a program, against a cache that saw only what is left."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import LEFT, PROGRAM
from conformance.reporting.scripts.programmed import programmed

ROWS = "all"


def told(cache: Any) -> dict[str, str]:
    """What the layers tell, and the cache as a whole."""
    own = getattr(cache, "self_attention_cache", cache)
    whole = [getattr(own, name, None) for name in ("batch_size", "is_initialized")]
    whole += [getattr(layer, "has_previous_state", None) for layer in own.layers]
    layers = [layer for layer in own.layers if hasattr(layer, "get_seq_length") and hasattr(layer, "get_mask_sizes")]
    sizes = [[int(size) for size in layer.get_mask_sizes(1)] for layer in layers if layer.is_initialized]
    lengths = str([int(layer.get_seq_length()) for layer in layers])
    return {"lengths": lengths, "mask sizes": str(sizes), "as a whole": str(whole)}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Of both caches, before one more token."""
    return told(programmed(LEFT[:-1])[0]), told(programmed(PROGRAM[:-1])[0])
