# ruff: noqa: INP001
"""The cache that a drafted call leaves, against the one that plain decoding leaves."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, START, STOPPING, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.leaves import leaves

ROWS = "first"
UNSEEN = ("cache keys", "cache values", "cache conv", "cache recurrent")
BEYOND = ("chunk", "embeds", "turns", "bare", "static")


def left(out: Any) -> dict[str, str]:
    """All that the cache says of itself, without the states."""
    cache = next(out[name] for name in ("cache", "past_key_values", "cache_params") if out.get(name) is not None)
    said = {"length": str(cache.get_seq_length()), **leaves(cache, "cache")}
    return {path: text for path, text in said.items() if not text.startswith("torch.")}


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What the cache of plain decoding under the same tokens says of itself, and what that of the call says."""
    model = make_model()
    keywords, config = helped(model) | STOPPING, GenerationConfig(**SETTINGS | CHANGES)
    torch.manual_seed(SEED)
    out = model.generate(**INPUTS, generation_config=config, **keywords)
    tokens = out.sequences[0, START:].tolist()
    config = GenerationConfig(**SETTINGS | {"eos_token_id": None, "do_sample": False, "max_new_tokens": len(tokens)})
    same = {"prefix_allowed_tokens_fn": lambda _, ids: [tokens[len(ids) - START]]}
    return left(make_model().generate(**INPUTS, generation_config=config, **same)), left(out)
