# ruff: noqa: INP001
"""A streamer that keeps what it is given."""

from __future__ import annotations

from typing import Any

import torch


class Keep:
    """A streamer that keeps what it is given, and counts how often it is ended."""

    def __init__(self) -> None:
        self.received: list[torch.Tensor] = []
        self.ends = 0

    def put(self, value: Any) -> None:
        self.received.append(value)

    def end(self) -> None:
        self.ends += 1
