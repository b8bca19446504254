# ruff: noqa: INP001
"""The lengths that the layers of a cache tell after a crop of more than there is."""

from __future__ import annotations

from conformance.reporting.scripts.frame import PROGRAM
from conformance.reporting.scripts.programmed import programmed

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """None of them below zero, and those that are told."""
    cache = programmed(PROGRAM[:-1])[0]
    layers = getattr(cache, "self_attention_cache", cache).layers
    lengths = [int(layer.get_seq_length()) for layer in layers]
    return {"lengths": str([max(0, length) for length in lengths])}, {"lengths": str(lengths)}
