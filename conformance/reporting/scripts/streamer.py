# ruff: noqa: INP001
"""What a streamer receives, against the sequences."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, fault, make_model
from conformance.reporting.scripts.keep import Keep


def main() -> None:
    """Compare what a streamer received with the returned sequences."""
    keep = Keep()
    torch.manual_seed(SEED)
    out = make_model().generate(**batch(ROWS), generation_config=GenerationConfig(**SETTINGS), streamer=keep)
    start = out.sequences.shape[1] - len(out.logits)
    expected = [out.sequences[:, :start], *out.sequences[:, start:].unbind(dim=1)]
    if [put.tolist() for put in keep.received] != [part.tolist() for part in expected]:
        fault([part.tolist() for part in expected], [put.tolist() for put in keep.received])
    if keep.ends != 1:
        fault("end() called once", f"{keep.ends} times")
