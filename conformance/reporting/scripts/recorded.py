# ruff: noqa: INP001
"""Hidden states and attentions under drafts, against those of plain decoding."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, INPUTS, SEED, SETTINGS, START, STOPPING, make_model
from conformance.reporting.scripts.gaps import gaps
from conformance.reporting.scripts.helped import helped

ROWS = "first"
BEYOND = ("chunk", "embeds", "turns", "bare")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What every recorded state has to be, and is."""
    model = make_model()
    keywords, config = helped(model) | STOPPING, GenerationConfig(**SETTINGS | CHANGES)
    torch.manual_seed(SEED)
    out = model.generate(**INPUTS, generation_config=config, **keywords)
    tokens = out.sequences[0, START:].tolist()
    config = GenerationConfig(**SETTINGS | {"eos_token_id": None, "do_sample": False, "max_new_tokens": len(tokens)})
    same = {"prefix_allowed_tokens_fn": lambda _, ids: [tokens[len(ids) - START]]}
    plain = make_model().generate(**INPUTS, generation_config=config, **same)
    return gaps(plain, plain), gaps(out, plain)
