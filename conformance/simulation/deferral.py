"""What can be seen of deferral from outside, on a device that is late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.simulation.late import LateDevice
from conformance.snapshots import Flat, flatten


@dataclass
class Seen:
    """One run, from outside.

    deferred: something was copied asynchronously. forwards: of the model, the prefill included; finished: those that
    did not raise; own_step_waits: those that began after a wait for a copy issued since the one before. reads: values
    taken from the device between the prefill and the end; `reads_in_forwards` of them by the model. visible: the
    prefill's outputs held a cache; says: whether it said that it can be put back; recording_early: past states were
    recorded during the prefill. cache: the live cache, or None where none was met; written: it holds tensors, which one
    that `generate` makes for a model without states never does. streamed, sizes: before each
    forward, the calls of `put` so far and the shapes of the cache's tensors. random: the generator's state at the
    end; draws_itself: a forward drew from it; chosen_from: the shape of a step's logits, (batch, vocabulary).
    """

    deferred: bool = False
    forwards: int = 0
    finished: int = 0
    own_step_waits: int = 0
    reads: int = 0
    reads_in_forwards: int = 0
    visible: bool = False
    says: bool = False
    recording_early: bool = False
    cache: Any = None
    written: bool = False
    streamed: list[int] = field(default_factory=list)
    sizes: list[Flat] = field(default_factory=list)
    random: torch.Tensor | None = None
    draws_itself: bool = False
    chosen_from: tuple[int, int] = (0, 0)


class Deferral:
    """The probe: runs the call on a late device, and writes down a `Seen`."""

    name = "deferral"

    def __init__(self, lag: int | None, polls: int = 1) -> None:
        self.lag, self.polls = lag, polls

    @contextmanager
    def around(self, model: Any, call: Call) -> Iterator[Callable[[], Seen]]:
        """The late device, for the length of the block."""
        device, seen = LateDevice(self.lag, self.polls), Seen()

        def before(_: Any, __: Any, kwargs: dict[str, Any]) -> None:
            name = upstream.cache_name(kwargs)
            seen.cache = kwargs[name] if name else seen.cache
            if device.forwards == 0:
                seen.recording_early = upstream.records(seen.cache)
            seen.streamed.append(len(getattr(call.streamer, "received", ())))
            seen.sizes.append(_sizes(seen.cache))
            seen.random = torch.get_rng_state()

        def after(_: Any, __: Any, outputs: Any) -> None:
            seen.finished += 1
            seen.draws_itself |= _bytes(torch.get_rng_state()) != _bytes(seen.random)
            logits = getattr(outputs, "logits", None)
            seen.chosen_from = (0, 0) if logits is None else (logits.shape[0], logits.shape[-1])
            cache = upstream.cache_of(outputs)
            seen.cache = cache if cache is not None else seen.cache
            seen.written |= bool(_sizes(seen.cache))
            if device.forwards == 1:
                seen.visible, seen.says = cache is not None, upstream.can_be_put_back(cache)
                device.reads = device.reads_in_forwards = 0  # what comes before the first token is no matter here

        def reading() -> Seen:
            seen.deferred, seen.forwards = device.copies > 0, device.forwards
            seen.own_step_waits, seen.reads = device.own_step_waits, device.reads
            seen.reads_in_forwards, seen.random = device.reads_in_forwards, torch.get_rng_state()
            return seen

        hooks = (
            model.register_forward_pre_hook(before, with_kwargs=True),
            model.register_forward_hook(after),
        )
        try:
            with device, device.watching(model):
                yield reading
        finally:
            for hook in hooks:
                hook.remove()


def _sizes(cache: Any) -> Flat:
    return {path: leaf.shape for path, leaf in flatten(cache) if isinstance(leaf, torch.Tensor)}


def _bytes(state: torch.Tensor | None) -> bytes:
    """Without the late device seeing it, which would count it as a value that the host reads."""
    with torch._C.DisableTorchFunction():
        return b"" if state is None else state.numpy().tobytes()
