# ruff: noqa: INP001
"""What a streamer receives, against the sequences."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import SEED, make_model
from conformance.reporting.scripts.given import given
from conformance.reporting.scripts.told import told

ROWS = "all"
BEYOND = ("quantized",)


class Streamer:
    """Keeps what it is given as it is: a copy would hide a tensor that changes later."""

    def __init__(self) -> None:
        self.received: list[torch.Tensor] = []
        self.ends = 0

    def put(self, value: torch.Tensor) -> None:
        """Called by `generate` with the prompt, then with each step's tokens."""
        self.received.append(value)

    def end(self) -> None:
        """Called by `generate` once, at the end."""
        self.ends += 1


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """What a streamer should receive, by the returned sequences, and what it received."""
    model, streamer = make_model(), Streamer()
    call = {**given(model), **told(model)}
    torch.manual_seed(SEED)
    out = model.generate(**call, streamer=streamer)
    start = out.sequences.shape[1] - len(out.logits)
    calls = [out.sequences[:, :start], *out.sequences[:, start:].unbind(dim=1)]
    wanted = {f"call {n} of put": call.tolist() for n, call in enumerate(calls)}
    got = {f"call {n} of put": call.tolist() for n, call in enumerate(streamer.received)}
    return {**wanted, "calls of end": 1}, {**got, "calls of end": streamer.ends}
