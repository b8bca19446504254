"""Whether to stop, asked after every token: of a device that is waited for, or one step late, without waiting.

The flag is copied asynchronously into one of two host slots and read on the following step.
"""

from __future__ import annotations

from typing import Any

import torch


class StopCheck:
    """Says after every token whether to stop, and hands the tokens to a streamer. This one waits for the device."""

    defers = False

    def __init__(self, streamer: Any = None) -> None:
        self.streamer = streamer

    def __call__(
        self,
        finished: torch.Tensor,
        tokens: torch.Tensor,
        length: int,  # noqa: ARG002
        fits: bool = True,  # noqa: ARG002
    ) -> bool:
        """Whether to stop after this step.

        finished: (batch,) bool, the rows that have ended; tokens: (batch,), the step's; length: tokens in each row
        with them; fits: whether another step has a place in the cache and among the positions.
        """
        if self.streamer is not None:
            self.streamer.put(tokens.cpu())
        return bool(finished.all())

    def overdue(self) -> bool:
        """Whether the step under way should not have been begun."""
        return False

    def finish(self) -> int:
        """Hand out what is held back, and say how many steps have to be undone."""
        return 0


class Slot:
    """Host memory for one step's flag and tokens, and the event that says when they are there."""

    def __init__(self, input_ids: torch.Tensor) -> None:
        pinned = input_ids.device.type == "cuda"
        self.flag = torch.zeros((), dtype=torch.bool, pin_memory=pinned)
        self.tokens = torch.zeros(input_ids.shape[0], dtype=torch.long, pin_memory=pinned)
        self.event = event_of(input_ids.device)

    def fill(self, finished: torch.Tensor, tokens: torch.Tensor | None) -> None:
        """Begin to copy; returns before anything has arrived. The event comes after the copies it stands for."""
        self.flag.copy_(finished.all(), non_blocking=True)
        if tokens is not None:
            self.tokens.copy_(tokens, non_blocking=True)
        self.event.record()


class DeferredStopCheck(StopCheck):
    """Says it one step late, without ever waiting for the step that it was called for."""

    defers = True

    def __init__(self, input_ids: torch.Tensor, max_length: int | None, streamer: Any = None) -> None:
        super().__init__(streamer)
        self.max_length = max_length
        self.slots = (Slot(input_ids), Slot(input_ids))
        self.issued = self.read = 0  # steps whose flag was sent off, and those whose flag was read
        self.stopped = False  # what the flag read last says

    def __call__(self, finished: torch.Tensor, tokens: torch.Tensor, length: int, fits: bool = True) -> bool:
        """Whether the step *before* was the last one; or this one, where the host knows that by itself.

        The length is known to the host, so the last step by length is never late. Nor is one after which another
        step has no place: then its own flag is waited for.
        """
        self._issue(finished, tokens)
        if self.issued - self.read > 1:
            self._read()
        if self.stopped or (self.max_length is not None and length >= self.max_length):
            return True
        if not fits:
            self._read()
        return self.stopped

    def overdue(self) -> bool:
        """Whether a step before had said stop already; waits for its flag."""
        if self.read < self.issued:
            self._read()
        return self.stopped

    def finish(self) -> int:
        """0 or 1. The tokens of an undone step are never handed out; those of the last step are here."""
        for slot in self.slots:
            slot.event.synchronize()  # nothing may land in a slot that is gone
        if self.stopped:
            return self.issued - self.read
        while self.read < self.issued:
            self._read()
        return 0

    def _issue(self, finished: torch.Tensor, tokens: torch.Tensor) -> None:
        self.slots[self.issued % 2].fill(finished, tokens if self.streamer is not None else None)
        self.issued += 1

    def _read(self) -> None:
        """The oldest step that was not read yet. A clone is streamed, since the slot is filled again."""
        slot = self.slots[self.read % 2]
        slot.event.synchronize()
        self.read += 1
        self.stopped = bool(slot.flag)
        if self.streamer is not None:
            self.streamer.put(slot.tokens.clone())


class Arrived:
    """The event of a device without any: its copies have arrived when the call returns."""

    def record(self) -> None:
        """Nothing to wait for."""

    synchronize = record


def event_of(device: torch.device) -> Any:
    """An event of the device, or one that waits for nothing where the device has none (a CPU)."""
    event = torch.Event(device=device, blocking=True)
    try:
        event.record()
    except RuntimeError:
        return Arrived()
    return event
