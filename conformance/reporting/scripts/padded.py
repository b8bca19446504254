# ruff: noqa: INP001
"""A padded batch, against each row alone."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.feed import feed
from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, make_model
from conformance.reporting.scripts.logits import agree
from conformance.reporting.scripts.tokens import new_tokens


def main() -> None:
    """Decode all rows in one batch, then each row alone under the tokens that it got there."""
    torch.manual_seed(SEED)
    out = make_model().generate(**batch(ROWS), generation_config=GenerationConfig(**SETTINGS))
    for row, prompt in enumerate(ROWS):
        tokens = new_tokens(out, row)[:-1]
        alone = feed(batch([prompt]), [tokens], [1] * len(tokens))
        agree(out, row, [step[0] for step in alone], batch(ROWS))
