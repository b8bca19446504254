"""What is asked of a tensor on a simulated device before torch takes it for an op, and has to be answered there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from conformance.simulation.ledger import LEDGER

# Each device has addresses of its own, as real ones have: accelerate tells tied weights by addresses that were freed.
ADDRESSES = 1 << 56
SET_DATA = torch.Tensor.data.__set__
Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def plainly(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """As torch does it."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _address(_: Any, args: Args, __: Kwargs) -> int:
    return int(args[0].on_cpu.data_ptr()) + ADDRESSES * (args[0].device.index + 1)


def _storage(func: Any, args: Args, _: Kwargs) -> Any:
    return getattr(args[0].on_cpu, func.__name__)()


def _read(func: Any, args: Args, _: Kwargs) -> Any:
    LEDGER.syncs += 1
    return getattr(args[0].on_cpu, func.__name__)(*args[1:])


def _made_like(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Where no device is named, torch changes the current one for the while, which no backend in Python can have."""
    device = kwargs.get("device")
    return plainly(func, args, {**kwargs, "device": args[0].device if device is None else device})


def _with_lengths(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Lengths may be anywhere, and are wanted as numbers."""
    args = (*args[:2], *(_numbers(value) for value in args[2:]))
    return plainly(func, args, {key: _numbers(value) if "lengths" in key else value for key, value in kwargs.items()})


def _numbers(value: Any) -> Any:
    return value.tolist() if isinstance(value, torch.Tensor) else value


def _set(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`tensor.data = other`: the value and the booking follow what torch has done to shape and device."""
    result = plainly(func, args, kwargs)
    if func == SET_DATA:
        args[0].on_cpu, args[0].held = args[1].on_cpu.detach(), args[1].held
    return result


ANSWERS: Mapping[str, Callable[[Any, Args, Kwargs], Any]] = {
    "data_ptr": _address,
    "untyped_storage": _storage,
    "storage": _storage,
    "tolist": _read,
    "__format__": _read,
    "new": _made_like,
    "new_tensor": _made_like,
    "ctc_loss": _with_lengths,
    "__set__": _set,
}
