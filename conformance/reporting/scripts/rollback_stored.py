# ruff: noqa: INP001
"""How many states the layers of a cache store after a program, against one that never recorded."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import LEFT, PROGRAM
from conformance.reporting.scripts.programmed import programmed

ROWS = "all"


def stored(cache: Any) -> dict[str, str]:
    """The number of states of every layer."""
    layers = getattr(cache, "self_attention_cache", cache).layers
    return {"states": str([layer.keys.shape[-2] for layer in layers if getattr(layer, "keys", None) is not None])}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Of both caches, before one more token."""
    return stored(programmed(LEFT[:-1])[0]), stored(programmed(PROGRAM[:-1])[0])
