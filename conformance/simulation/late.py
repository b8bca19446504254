"""A device whose copies to the host arrive late, simulated on a CPU; and a count of what the host waits for.

On a CPU every copy has arrived when the call returns, so a loop that reads too early is right by accident. Inside
this context a copy made with `non_blocking=True` leaves its destination poisoned until its event is synchronised,
or until it lands by itself after as many forwards as the lag says. Reading too early then shows as a wrong result.

What moves to the host is known by the name "cpu", by `cpu()` and by copies into host tensors.
`to(torch.device("cpu"))` is taken for staying on the device, which is a CPU as well. Only `torch.Event`, looked up when
it is called, is replaced.

An event stands for the copies from its own device: with a simulated accelerator (`simulation.accelerator`) there are
several, and its events are these. Copies to a device are ordered with what it computes, so that they are never late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from conformance.simulation import waits
from conformance.simulation.tensors import NAME

WRITES = frozenset({"copy_", "__setitem__"})  # of values into a tensor, which may be the host's
POISON = -(2**40)
ON_THE_HOST = "_on_the_host"  # set on tensors that live in host memory: reading them waits for nothing
# Set on those that were made without naming a device. They are in host memory too, but a loop that was written for a
# CPU may take them for its device: only a copy into one from elsewhere is counted by it.
PLAINLY = "_made_plainly"


class Copy:
    """One copy on its way to the host, from `device`; `step`: the forwards begun when it was issued."""

    def __init__(self, destination: torch.Tensor, source: torch.Tensor, step: int) -> None:
        self.destination, self.step, self.device, self.landed = destination, step, source.device, False
        self._value = source.detach().clone().to(destination.dtype).expand_as(destination).clone()
        destination.detach().copy_(_poisoned(self._value))

    def land(self) -> None:
        """Write what was copied, once."""
        if not self.landed:
            self.destination.detach().copy_(self._value)
            self.landed = True


def _poisoned(value: torch.Tensor) -> torch.Tensor:
    """The values that are most surely wrong: the other truth, an impossible token, no number."""
    if value.dtype == torch.bool:
        return ~value
    return torch.full_like(value, float("nan") if value.is_floating_point() else max(POISON, _least(value)))


def _least(value: torch.Tensor) -> int:
    return int(torch.iinfo(value.dtype).min)


class LateDevice(TorchFunctionMode):
    """The context. `lag`: forwards after which a copy lands by itself (0: at once); None: when waited for only.
    `polls`: how often in a row an event answers that it is not over; then it is, and the host has waited for it.

    copies: asynchronous copies made. forwards: forwards begun. own_step_waits: forwards that began after the host
    had waited for a copy issued since the forward before. reads: values that the host took from the device, each of
    which it waits for; `reads_in_forwards` of them inside the model.
    """

    def __init__(self, lag: int | None = None, polls: int = 1) -> None:
        super().__init__()
        self.lag, self.polls = lag, polls
        self.copies = self.forwards = self.own_step_waits = self.reads = self.reads_in_forwards = 0
        self._pending: list[Copy] = []
        self._inside = self._waited_for_own = False
        self._block = ExitStack()

    def __enter__(self) -> LateDevice:
        self._block.enter_context(patch.object(torch, "Event", self._event))
        simulated = getattr(torch, NAME, None)
        if simulated is not None:
            self._block.enter_context(patch.object(simulated, "Event", self._event))
            self._block.enter_context(patch.object(simulated, "synchronize", self._synchronize))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._block.close()

    def _event(self, device: Any = None, **_: Any) -> LateEvent:
        return LateEvent(self, None if device is None else torch.device(device))

    def _synchronize(self, device: Any = None) -> None:
        """Wait for all that a simulated device was given; without a device, that any was."""
        self.wait(self.recorded(None if device is None else torch.device(device)), self.forwards)

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name == "copy_" and _non_blocking(args, kwargs, place=2) and args[0].device.type == "cpu":
            self._issue(args[0], args[1] if len(args) > 1 else kwargs["src"])
            return args[0]
        if name == "to" and _non_blocking(args, kwargs, place=3) and waits.told_to_be_the_hosts(args, kwargs):
            landing = func(*args, **{**kwargs, "copy": True})
            self._issue(landing, landing.clone())
            return landing
        result = func(*args, **kwargs)
        return self._accounted(name, args, kwargs, result)

    def _issue(self, destination: torch.Tensor, source: torch.Tensor) -> None:
        with torch._C.DisableTorchFunction():
            copy = Copy(destination, source, self.forwards)
        # A slot may be a part of a buffer, of which the next step takes another view.
        _mark((destination, destination._base))
        self.copies += 1
        if self.lag == 0:
            self._land([copy])
        else:
            self._pending.append(copy)

    def _land(self, copies: Sequence[Copy]) -> None:
        with torch._C.DisableTorchFunction():
            for copy in copies:
                copy.land()

    def _accounted(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Any:
        """The result, marked as the host's where it is; what was read from the device is counted."""
        given = _tensors((*args, *kwargs.values()))
        first = next((arg for arg in args if isinstance(arg, torch.Tensor)), None)
        if first is None:
            if kwargs.get("device") == "cpu":  # made there, by name
                _mark(result)
            elif self._made_plainly(given, kwargs):
                _mark(result, PLAINLY)
            return result
        on_the_host = _is_on_the_host(first)
        moved = name == "cpu" or (name == "to" and waits.told_to_be_the_hosts(args, kwargs))
        read = waits.reads(name, args) or moved
        read |= not self._inside and waits.sized_by_values(name, args, kwargs)
        written = name in WRITES and _blocks(first, _tensors(args[-1:] if name == "__setitem__" else given[1:]))
        if written or (read and not on_the_host):
            self.reads += 1
            self.reads_in_forwards += self._inside
        if moved or on_the_host:
            if result is first and not on_the_host:
                result = result.clone()  # on a CPU the tensor itself; from a device it would be another one
            _mark(result)
        elif name == "to" and _to_a_device(args, kwargs):
            if result is first and hasattr(first, PLAINLY):
                result = result.clone()  # what was made plainly stays where it is
        elif self._made_plainly(given, kwargs):
            _mark(result, PLAINLY)
        return result

    def _made_plainly(self, given: Sequence[torch.Tensor], kwargs: dict[str, Any]) -> bool:
        """Whether what was made of `given` is in host memory wherever the model is: outside it, and on no device."""
        return not self._inside and kwargs.get("device") is None and all(map(_may_be_the_hosts, given))

    def recorded(self, device: torch.device | None) -> list[Copy]:
        """What an event of a device stands for that is recorded now: its copies that have not landed; None: of any."""
        return [copy for copy in self._pending if device is None or copy.device == device]

    def wait(self, copies: Sequence[Copy], recorded_at: int) -> None:
        """The host waits until these have landed; the event was recorded after `recorded_at` forwards."""
        if recorded_at == self.forwards:
            self._waited_for_own = True
        self._land(copies)
        self._pending = [copy for copy in self._pending if not copy.landed]

    def begin_forward(self, *_: Any) -> None:
        """The device is given its next step: what is due lands."""
        self.own_step_waits += self._waited_for_own
        self._waited_for_own, self._inside = False, True
        self.forwards += 1
        if self.lag is not None:
            self._land([copy for copy in self._pending if self.forwards - copy.step >= self.lag])
            self._pending = [copy for copy in self._pending if not copy.landed]

    def end_forward(self, *_: Any) -> None:
        """The host has issued the whole step."""
        self._inside = False

    @contextmanager
    def watching(self, model: Any) -> Iterator[None]:
        """Count the forwards of this model."""
        hooks = (
            model.register_forward_pre_hook(self.begin_forward),
            model.register_forward_hook(self.end_forward, always_call=True),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


class LateEvent:
    """An event of the late device, with what decoding loops ask of one."""

    def __init__(self, late: LateDevice, device: torch.device | None) -> None:
        self._late, self._device, self._recorded_at = late, device, -1
        self._copies: list[Copy] = []
        self._asked = 0

    def record(self, *_: Any) -> None:
        """Stand for all that was issued so far."""
        self._copies, self._recorded_at = self._late.recorded(self._device), self._late.forwards
        self._asked = 0

    def synchronize(self) -> None:
        """Wait for what it stands for; at once where it was never recorded."""
        self._late.wait(self._copies, self._recorded_at)

    def query(self) -> bool:
        """Whether all that it stands for has landed: after some askings it has, or a loop that polls would not end."""
        if not all(copy.landed for copy in self._copies):
            self._asked += 1
            if self._asked <= self._late.polls:
                return False
            self.synchronize()
        return True


def _mark(made: Any, where: str = ON_THE_HOST) -> None:
    """What is a tensor of these, or this tensor, lives in host memory."""
    for one in made if isinstance(made, (tuple, list)) else (made,):
        if isinstance(one, torch.Tensor):
            setattr(one, where, True)


def _is_on_the_host(tensor: Any) -> bool:
    return not isinstance(tensor, torch.Tensor) or getattr(tensor, ON_THE_HOST, False)


def _may_be_the_hosts(tensor: torch.Tensor) -> bool:
    """Whether it was made there, or is a part of what was."""
    parts = (tensor, tensor._base)
    return any(hasattr(part, ON_THE_HOST) or hasattr(part, PLAINLY) for part in parts if part is not None)


def _blocks(destination: torch.Tensor, sources: Sequence[torch.Tensor]) -> bool:
    """Whether a copy that is not asynchronous goes to the host from elsewhere."""
    if _is_on_the_host(destination):
        return not all(map(_is_on_the_host, sources))
    return _may_be_the_hosts(destination) and not all(map(_may_be_the_hosts, sources))


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among the arguments of a call, those in lists included."""
    flat = [part for value in values for part in (value if isinstance(value, (tuple, list)) else (value,))]
    return [part for part in flat if isinstance(part, torch.Tensor)]


def _non_blocking(args: Sequence[Any], kwargs: dict[str, Any], place: int) -> bool:
    return bool(kwargs.get("non_blocking", args[place] if len(args) > place else False))


def _to_a_device(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether `to` was asked for a device, by an object or by a tensor that is there; a type alone moves nothing."""
    where = [*args[1:], *kwargs.values()]
    return any(isinstance(value, torch.device | torch.Tensor | str) for value in where)
