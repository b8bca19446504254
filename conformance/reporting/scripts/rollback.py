# ruff: noqa: INP001
"""The logits of one more token after a program of operations on a cache, against a cache that saw only what is left."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.frame import LEFT, PROGRAM
from conformance.reporting.scripts.programmed import programmed

ROWS = "all"
UNSEEN = ("contents", "is_croppable", "layers", ".", "self_", "cross_")
INSTEAD = {
    "beam": "beams",
    "assisted": "assisted_cache",
    "length": "rollback_told",
    "mask sizes": "rollback_told",
    "batch size": "rollback_told",
    "is_initialized": "rollback_told",
    "has_previous_state": "rollback_told",
    "stored states": "rollback_stored",
    "is_croppable": "rollback_croppable",
}


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """Of the last forward, on both caches."""
    return programmed(LEFT)[1].logits[:, -1], programmed(PROGRAM)[1].logits[:, -1]
