# ruff: noqa: INP001
"""How much is drafted."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.drafts_of import drafts_of
from conformance.reporting.scripts.frame import CHANGES, MOST, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops

ROWS = "first"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The most that may be drafted at once, and the longest draft."""
    model = make_model()
    keywords = arriving(model) | helped(model) | stops()
    drafts = drafts_of(model)
    torch.manual_seed(SEED)
    model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    longest = max(map(len, drafts.values()))
    expected = f"at most {MOST} tokens"
    return {"a draft": expected}, {"a draft": expected if longest <= MOST else f"{longest} tokens"}
