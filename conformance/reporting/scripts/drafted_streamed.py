# ruff: noqa: INP001
"""What a streamer receives of a call with drafts, against its sequence."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, START, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops

ROWS = "first"


class Streamer:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.received: list[list[int]] = []
        self.ends = 0

    def put(self, value: torch.Tensor) -> None:
        """Called by `generate` with the prompt, then with the tokens of each round."""
        self.received.append(value.flatten().tolist())

    def end(self) -> None:
        """Called by `generate` once, at the end."""
        self.ends += 1


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """What a streamer should receive, by the returned sequence, and what it received."""
    model, streamer = make_model(), Streamer()
    keywords = arriving(model) | helped(model) | stops()
    torch.manual_seed(SEED)
    config = GenerationConfig(**SETTINGS | CHANGES)
    ids = model.generate(**keywords, generation_config=config, streamer=streamer).sequences[0].tolist()
    wanted = {"prompt": ids[:START], "new tokens": ids[START:], "calls of end": 1}
    new = [token for tokens in streamer.received[1:] for token in tokens]
    got = {"prompt": streamer.received[0], "new tokens": new}
    return wanted, {**got, "calls of end": streamer.ends}
