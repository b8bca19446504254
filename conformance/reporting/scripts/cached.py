# ruff: noqa: INP001
"""Each row alone with the cache, against recomputing everything."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, make_model
from conformance.reporting.scripts.logits import agree
from conformance.reporting.scripts.recompute import recompute
from conformance.reporting.scripts.tokens import new_tokens


def main() -> None:
    """Decode each row alone with the cache, then recompute the logits under the same tokens."""
    for row in ROWS:
        torch.manual_seed(SEED)
        out = make_model().generate(**batch([row]), generation_config=GenerationConfig(**SETTINGS))
        agree(out, 0, recompute(row, new_tokens(out, 0)), batch([row]))
