# ruff: noqa: INP001
"""Several tokens at once onto a filled cache, against one by one."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import GROUPS, INPUTS, SETTINGS, TOKENS, make_model

UNSEEN = ("scores", "sequences", "padding")
ROWS = "first"
ROOM_FOR = "TOKENS"


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of feeding the tokens one by one onto a filled cache, and of feeding them in groups."""
    config, how = GenerationConfig(**SETTINGS), {"custom_generate": feed, "tokens": torch.tensor([TOKENS])}
    one_by_one = make_model().generate(**INPUTS, generation_config=config, groups=[1] * sum(GROUPS), **how)
    in_groups = make_model().generate(**INPUTS, generation_config=config, groups=GROUPS, **how)
    return one_by_one[0], in_groups[0]
