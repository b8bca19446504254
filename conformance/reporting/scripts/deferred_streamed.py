# ruff: noqa: INP001
"""What a streamer receives where stopping is deferred, against the sequences."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, START, make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.streamer import Streamer

ROWS = "all"
UNSEEN = ("streamed after the end", "type of what is streamed", "held back")


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """What a streamer should receive, by the returned sequences, and what it received."""
    model, streamer = make_model(), Streamer()
    keywords = given(model)
    torch.manual_seed(SEED)
    with deferred():
        out = model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES), streamer=streamer)
    sequences = getattr(out, "sequences", out)
    calls = [sequences[:, :START], *sequences[:, START:].unbind(dim=1)]
    wanted = {f"call {n} of put": call.tolist() for n, call in enumerate(calls)}
    got = {f"call {n} of put": call.tolist() for n, call in enumerate(streamer.received)}
    return {**wanted, "calls of end": 1}, {**got, "calls of end": streamer.ends}
