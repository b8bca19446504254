# ruff: noqa: INP001
"""A static cache, against the dynamic cache."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, make_model
from conformance.reporting.scripts.logits import agree
from conformance.reporting.scripts.tokens import new_tokens


def main() -> None:
    """Decode with a static cache, then with the dynamic cache under the same tokens."""
    static = {"cache_implementation": "static", "disable_compile": True}
    torch.manual_seed(SEED)
    out = make_model().generate(**batch(ROWS), generation_config=GenerationConfig(**SETTINGS, **static))
    steps = len(out.logits) - 1
    dynamic = feed(batch(ROWS), out.sequences[:, out.sequences.shape[1] - steps - 1 : -1].tolist(), [1] * steps)
    for row in range(len(ROWS)):
        agree(out, row, [step[row] for step in dynamic[: len(new_tokens(out, row))]], batch(ROWS))
