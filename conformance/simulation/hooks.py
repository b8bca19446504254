"""Hooks of a caller's: a processor, a criterion and a streamer that count their calls, keep state, and may raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria


class HookRaised(RuntimeError):
    """What a hook raises when it is told to."""


@dataclass
class Calls:
    """Counts the calls of one hook, and raises HookRaised in the `raises_at`th (0: never)."""

    raises_at: int = 0
    count: int = 0

    def one_more(self) -> int:
        """The number of this call, the first being 1."""
        self.count += 1
        if self.count == self.raises_at:
            raise HookRaised(f"told to raise in call {self.count}")
        return self.count


class StatefulProcessor(LogitsProcessor):
    """Takes something off another token in each call: what it does depends on how often it was called.

    `steers` off: it counts its calls, and leaves the scores as they are.
    """

    def __init__(self, raises_at: int = 0, steers: bool = True) -> None:
        self.calls, self.steers = Calls(raises_at), steers

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Scores of shape (batch, vocabulary): a new tensor where they are steered."""
        token = 7 * self.calls.one_more() % scores.shape[1]
        if not self.steers:
            return scores
        return scores.index_fill(1, torch.tensor([token], device=scores.device), -1e3)


class CountingCriterion(StoppingCriteria):
    """Stops every row in the `stop_after`th call, and in each later one (0: never)."""

    def __init__(self, stop_after: int = 0, raises_at: int = 0) -> None:
        self.calls, self.stop_after = Calls(raises_at), stop_after

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:  # noqa: ARG002
        """(batch,) bool."""
        call = self.calls.one_more()
        stop = 0 < self.stop_after <= call
        return torch.full((input_ids.shape[0],), stop, dtype=torch.bool, device=input_ids.device)


class RaisingStreamer:
    """Takes tokens until it is told to raise; the prompt is its first call."""

    def __init__(self, raises_at: int = 0) -> None:
        self.calls, self.ends = Calls(raises_at), 0

    def put(self, value: torch.Tensor) -> None:  # noqa: ARG002
        """Called by `generate` with the prompt, then with each step's tokens."""
        self.calls.one_more()

    def end(self) -> None:
        """Called by `generate` once, at the end."""
        self.ends += 1
