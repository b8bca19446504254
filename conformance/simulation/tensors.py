"""Tensors of the simulated accelerator: each wraps one on the CPU, and runs the CPU's kernels on it.

Placement is simulated, not numerics: what a kernel computes is what the CPU computes, bitwise where it is given
the same shapes. A tensor on another device is refused as CUDA refuses it, before anything is computed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import torch

from conformance.simulation import draws
from conformance.simulation.functions import ANSWERS, SET_DATA, plainly
from conformance.simulation.kernels import KERNELS
from conformance.simulation.ledger import LEDGER, Held

NAME = "sim"
# Ops that take tensors of several devices: copies, and indexing, whose indices may be on the CPU.
ACROSS = {"aten::copy_", "aten::_to_copy", "aten::_copy_from", "aten::_copy_from_and_resize"}
SHAPES = {"aten::is_same_size"}  # read no values
INDEXING = {"aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_", "aten::_unsafe_index"}
# Ops whose second argument has to be on the CPU, and whose second result is: lengths and batch sizes.
TAKE_LENGTHS = {"aten::_pack_padded_sequence", "aten::_pad_packed_sequence"}


class SimTensor(torch.Tensor):
    """A tensor on `sim:N`; `on_cpu` is its value on the CPU, `held` the booking of its storage."""

    on_cpu: torch.Tensor
    held: Held

    @staticmethod
    def __new__(cls: type, value: torch.Tensor, requires_grad: bool = False, **_: Any) -> Any:
        """As hooks rebuild a parameter, wherever its value is now: `type(param)(value, requires_grad=...)`."""
        return torch.nn.Parameter(value, requires_grad=requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy on the same device; torch's own would reach for a storage of which there is none."""
        if id(self) not in memo:
            copied = self.detach().clone()
            parameter = getattr(self, "_is_param", False)
            memo[id(self)] = torch.nn.Parameter(copied, requires_grad=self.requires_grad) if parameter else copied
        return memo[id(self)]

    def __reduce_ex__(self, proto: Any) -> Any:
        """Saved as its value and the name of its device, which `torch.load` puts it on again, or on another."""
        value = (self.on_cpu, self.dtype, str(self.device), self.requires_grad)
        if not getattr(self, "_is_param", False):
            return torch._utils._rebuild_device_tensor_from_cpu_tensor, value
        return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict())

    def __repr__(self, **_: Any) -> str:
        return f"{self.on_cpu!r} on {self.device}"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        answer = ANSWERS.get(getattr(func, "__name__", ""), plainly)
        return answer(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return run(func, args, dict(kwargs or {}))


def wrap(on_cpu: torch.Tensor, device: int, held: Held | None = None) -> SimTensor:
    """`on_cpu` as a tensor on a simulated device; `held`: its storage's booking, if any. Raises OutOfMemory."""
    held = held or Held(device, on_cpu.untyped_storage().nbytes())
    made: SimTensor = torch.Tensor._make_wrapper_subclass(
        SimTensor,
        on_cpu.shape,
        strides=on_cpu.stride(),
        storage_offset=on_cpu.storage_offset(),
        dtype=on_cpu.dtype,
        device=torch.device(NAME, device),
    )
    made.on_cpu, made.held = on_cpu, held
    # Views that are conjugated or negated when they are read: torch does it before it asks for a kernel.
    if on_cpu.is_conj():
        torch._C._set_conj(made, True)
    if on_cpu.is_neg():
        torch._C._set_neg(made, True)
    return made


def renew(tensor: SimTensor, owner: SimTensor | None) -> SimTensor:
    """`tensor` after an op that it was passed to: its shape, place and booking are those of its value again.

    `owner`: a tensor whose storage the value has now; None: it has a new one.
    """
    value, size = tensor.on_cpu, tensor.on_cpu.untyped_storage().nbytes()
    if owner is None:
        tensor.held = Held(tensor.device.index, size)
    elif owner.held is not tensor.held:
        tensor.held = owner.held
    if size != tensor.held.size:
        tensor.held.resize(size)
    if _layout(tensor) != _layout(value):
        plainly(SET_DATA, (tensor, wrap(value, tensor.device.index, tensor.held)), {})
    return tensor


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.storage_offset()


class _Call:
    """The arguments of one op, taken apart: the device it runs on, the CPU tensors, and whose storage is whose."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name, self.device = name, -1
        self.owners: dict[int, SimTensor] = {}  # storage → a tensor over it
        self.originals: dict[int, SimTensor] = {}  # id of a CPU tensor → the tensor that was passed
        self.others: list[torch.Tensor] = []
        self.on_the_cpu = 1 if name in TAKE_LENGTHS else -1
        self.args = tuple(_lengths(arg) if at == self.on_the_cpu else self._taken(arg) for at, arg in enumerate(args))
        self.kwargs = {key: self._taken(value) for key, value in kwargs.items()}

    def _taken(self, value: Any) -> Any:
        if isinstance(value, SimTensor):
            return self._own(value)
        if isinstance(value, torch.Tensor):
            self.others.append(value)
            return value
        if isinstance(value, list | tuple):
            return type(value)(self._taken(item) for item in value)
        return value

    def _own(self, value: SimTensor) -> torch.Tensor:
        index, on_cpu = value.device.index, value.on_cpu
        if self.device < 0:
            self.device = index
        elif index != self.device and self.name not in ACROSS and self.name not in SHAPES:
            self._refuse(value.device)
        self.owners[on_cpu.untyped_storage()._cdata] = value
        self.originals[id(on_cpu)] = value
        return on_cpu

    def refuse_other_devices(self) -> None:
        """As CUDA: a tensor elsewhere is refused, unless it is a number on the CPU or an index."""
        for other in self.others if self.name not in SHAPES else ():
            number = other.device.type == "cpu" and other.dim() == 0
            index = other.device.type == "cpu" and self.name in INDEXING and not other.dtype.is_floating_point
            if not number and not index:
                self._refuse(other.device)

    def _refuse(self, device: torch.device) -> None:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:{self.device} "
            f"and {device}! (when checking arguments for {self.name})"
        )

    def given_back(self, value: Any) -> Any:
        """The result with its tensors on the device again; one that was passed in is that very tensor."""
        if isinstance(value, torch.Tensor):
            owner = self.owners.get(value.untyped_storage()._cdata)
            if id(value) in self.originals:
                return renew(self.originals[id(value)], owner)
            return wrap(value, self.device, owner.held if owner is not None else None)
        if isinstance(value, list | tuple):
            back = (item if at == self.on_the_cpu else self.given_back(item) for at, item in enumerate(value))
            return type(value)(back)
        return value


def _lengths(value: torch.Tensor) -> torch.Tensor:
    """What has to be on the CPU, wherever the rest is; refused as CUDA refuses it."""
    if value.device.type != "cpu":
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got one on {value.device}")
    return value


@cache
def _name(func: Any) -> str:
    return str(func._schema.name)


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One op whose arguments name a simulated device: on the CPU's kernels, refused across devices."""
    name = _name(func)
    LEDGER.kernels[name] += 1
    if name == "aten::_to_copy":
        return _to_copy(*args, **kwargs)
    if name in ("aten::copy_", "aten::_copy_from"):
        return _copy(name, *args, **kwargs)
    if name == "aten::_has_compatible_shallow_copy_type":  # met where nothing is differentiable
        return all(isinstance(tensor, SimTensor) for tensor in args)
    device = kwargs.get("device")
    call = _Call(name, args, kwargs)
    call.refuse_other_devices()
    if device is not None:
        if torch.device(device).type != NAME:
            return func(*call.args, **call.kwargs)  # `empty_like` and friends, elsewhere
        call.kwargs["device"] = "cpu"
        call.device = LEDGER.index(torch.device(device).index)
    if name == "aten::_local_scalar_dense":
        LEDGER.syncs += 1
    if draws.is_random(func):
        return call.given_back(draws.run(func, call.args, call.kwargs, call.device))
    return call.given_back(KERNELS.get(name, func)(*call.args, **call.kwargs))


def _place(tensor: torch.Tensor) -> str:
    return f"{NAME}:{tensor.device.index}" if isinstance(tensor, SimTensor) else str(tensor.device)


def _count(source: str, target: str) -> None:
    """Count values that are moved: none are to or from `meta`."""
    if source != target and "meta" not in (source, target):
        LEDGER.transfers[source, target] += 1
        LEDGER.syncs += target == "cpu"


def _to_copy(tensor: torch.Tensor, *, device: Any = None, **kwargs: Any) -> torch.Tensor:
    """`to`: the value on another device, or in another dtype."""
    target = torch.device(device) if device is not None else tensor.device
    on_cpu = tensor.on_cpu if isinstance(tensor, SimTensor) else tensor
    kwargs.pop("non_blocking", None)
    if target.type == NAME:
        index = tensor.device.index if device is None else LEDGER.index(target.index)
        _count(_place(tensor), f"{NAME}:{index}")
        return wrap(torch.ops.aten._to_copy.default(on_cpu, **kwargs), index)
    _count(_place(tensor), str(target))
    moved: torch.Tensor = torch.ops.aten._to_copy.default(on_cpu, device=target, **kwargs)
    return moved


def _copy(name: str, first: torch.Tensor, second: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """`target.copy_(source)`, and `_copy_from(source, target)` as kernels call it."""
    target, source = (first, second) if name == "aten::copy_" else (second, first)
    _count(_place(source), _place(target))
    plain = [t.on_cpu if isinstance(t, SimTensor) else t for t in (target, source)]
    plain[0].copy_(plain[1])
    return target
