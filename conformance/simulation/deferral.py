"""What can be seen of deferral from outside, on a device that is late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conformance import upstream
from conformance.call import Call
from conformance.simulation.late import LateDevice


@dataclass
class Seen:
    """One run, from outside.

    deferred: something was copied asynchronously. forwards: of the model, the prefill included; finished: those that
    did not raise; own_step_waits: those that began after a wait for a copy issued since the one before. reads: values
    taken from the device between the prefill and the end; `reads_in_forwards` of them by the model. visible: the
    prefill's outputs held a cache; says: whether it said that it can be put back; recording_early: past states were
    recorded during the prefill. cache: the live cache, or None where none was met.
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


class Deferral:
    """The probe: runs the call on a late device, and writes down a `Seen`."""

    name = "deferral"

    def __init__(self, lag: int | None) -> None:
        self.lag = lag

    @contextmanager
    def around(self, model: Any, call: Call) -> Iterator[Callable[[], Seen]]:  # noqa: ARG002
        """The late device, for the length of the block."""
        device, seen = LateDevice(self.lag), Seen()

        def before(_: Any, __: Any, kwargs: dict[str, Any]) -> None:
            name = upstream.cache_name(kwargs)
            seen.cache = kwargs[name] if name else seen.cache
            if device.forwards == 0:
                seen.recording_early = upstream.records(seen.cache)

        def after(_: Any, __: Any, outputs: Any) -> None:
            seen.finished += 1
            cache = upstream.cache_of(outputs)
            seen.cache = cache if cache is not None else seen.cache
            if device.forwards == 1:
                seen.visible, seen.says = cache is not None, upstream.can_be_put_back(cache)
                device.reads = device.reads_in_forwards = 0  # what comes before the first token is no matter here

        def reading() -> Seen:
            seen.deferred, seen.forwards = device.copies > 0, device.forwards
            seen.own_step_waits, seen.reads = device.own_step_waits, device.reads
            seen.reads_in_forwards = device.reads_in_forwards
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
