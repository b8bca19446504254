# ruff: noqa: INP001
"""A decoder that starts with several tokens, against recomputing them with the rest."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.starting import starting

UNSEEN = ("scores", "sequences", "padding")
ROWS = "all"
ROOM_FOR = "TOKENS"


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits recomputed under the tokens that came, and those of decoding with the cache."""
    return starting()
