# ruff: noqa: INP001
"""The lengths and mask sizes that layers tell after a program, against a cache that saw only what is left."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import LEFT, PROGRAM
from conformance.reporting.scripts.programmed import programmed

ROWS = "all"
WHOLE = ("batch_size", "get_max_length", "is_initialized", "has_previous_state", "__len__")


def told(cache: Any) -> dict[str, str]:
    """What the layers tell."""
    layers = getattr(cache, "self_attention_cache", cache).layers
    layers = [layer for layer in layers if hasattr(layer, "get_seq_length") and hasattr(layer, "get_mask_sizes")]
    sizes = [[int(size) for size in layer.get_mask_sizes(1)] for layer in layers if layer.is_initialized]
    lengths = str([int(layer.get_seq_length()) for layer in layers])
    return {"lengths": lengths, "mask sizes": str(sizes), "as a whole": str([asked(cache, name) for name in WHOLE])}


def asked(cache: Any, name: str) -> str:
    """What a cache tells by a property or a method without arguments."""
    try:
        value = getattr(getattr(cache, "self_attention_cache", cache), name)
        return str(int(value() if callable(value) else value))
    except Exception as error:  # noqa: BLE001 - kinds without it raise, each in its own way
        return type(error).__name__


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Of both caches, before one more token."""
    return told(programmed(LEFT[:-1])[0]), told(programmed(PROGRAM[:-1])[0])
