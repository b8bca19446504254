"""A simulated accelerator in pure Python: `sim:0` … `sim:3`, on a machine that has none.

PyTorch's key for devices of others (PrivateUse1) is given a Python backend. Registering it changes the whole
process and cannot be undone, so only a process of its own may call `register`. Devices are present only inside
`devices(...)`: outside, the process answers as one without an accelerator.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from conformance import upstream
from conformance.simulation import draws, loading, tensors
from conformance.simulation.ledger import DEVICES, LEDGER
from conformance.simulation.swapping import keeps_identity
from conformance.simulation.tensors import NAME

# Kernels that make a tensor from nothing; each is asked of the device itself, so the fallback would come too late.
FACTORIES = (
    "empty.memory_format", "empty_strided", "arange", "arange.start", "arange.start_step", "full", "zeros", "ones",
    "scalar_tensor", "rand", "randn", "randint", "randint.low", "randperm", "eye", "eye.m", "linspace",
    "tril_indices", "triu_indices",
)  # fmt: skip
DIRECT = ("_to_copy", "copy_", "_copy_from", "detach", "lift_fresh", "clone", "fill_.Scalar", "_local_scalar_dense")
_kept_alive: list[Any] = []


def why_not() -> str | None:
    """Why this process cannot have simulated devices, or None."""
    return upstream.lacks_python_backend()


def register() -> None:
    """Register the backend in this process, once. Raises RuntimeError where torch has no Python backend."""
    if _kept_alive:
        return
    reason = why_not()
    if reason is not None:
        raise RuntimeError(reason)
    upstream.register_python_backend(NAME, _module(), _Hooks(), _Guard())
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(_kernel, "PrivateUse1")
    own = torch.library.Library("aten", "IMPL")
    for name in (*FACTORIES, *DIRECT):
        own.impl(name, _kernel_of(name), "PrivateUse1")
    loading.register()
    _kept_alive.extend([fallback, own])


def _kernel(func: Any, *args: Any, **kwargs: Any) -> Any:
    return tensors.run(func, args, kwargs)


def _kernel_of(name: str) -> Any:
    packet, _, overload = name.partition(".")
    func = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return lambda *args, **kwargs: tensors.run(func, args, kwargs)


@contextmanager
def devices(count: int = DEVICES, limits: Mapping[int, int] | None = None) -> Iterator[None]:
    """`count` devices are present inside, with `limits` bytes each; the ledger starts anew. Any other is refused."""
    register()
    LEDGER.reset()
    LEDGER.limits.update(limits or {})
    LEDGER.present, LEDGER.current = count, 0
    try:
        with keeps_identity():  # as where `Module.to` moves to a real accelerator
            yield
    finally:
        LEDGER.present = 0
        LEDGER.limits.clear()


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return LEDGER.present > 0

    def has_primary_context(self, dev_id: int) -> bool:  # noqa: ARG002
        return LEDGER.present > 0

    def is_built(self) -> bool:
        return True


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


class Event:
    """An event of a simulated device: its work is done when it is asked for, as kernels here run at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.recorded = False

    def record(self, *_: Any) -> None:
        """Everything issued so far belongs to this event."""
        self.recorded = True

    def synchronize(self) -> None:
        """Wait for it; counted."""
        LEDGER.syncs += 1

    def query(self) -> bool:
        """Whether it is over."""
        return True


class NoAutocast(list[torch.dtype]):
    """The dtypes of autocast: torch asks whether one is among them where autocast is switched on, and only there."""

    def __contains__(self, dtype: object) -> bool:
        raise NotImplementedError("simulated devices have no autocast; cast the model and what it is given instead")


def _module() -> types.ModuleType:
    """What `torch.sim` answers."""
    module = types.ModuleType(f"torch.{NAME}")
    answers: dict[str, Any] = {
        "is_available": lambda: LEDGER.present > 0,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        "device_count": lambda: LEDGER.present,
        "current_device": lambda: LEDGER.current,
        "set_device": _set_device,
        "device": _current,
        "synchronize": lambda *_: setattr(LEDGER, "syncs", LEDGER.syncs + 1),
        "mem_get_info": _mem_get_info,
        "memory_allocated": lambda device=None: LEDGER.held[_index(device)],
        "max_memory_allocated": lambda device=None: LEDGER.peak[_index(device)],
        "memory_reserved": lambda device=None: LEDGER.held[_index(device)],
        "empty_cache": lambda: None,
        "manual_seed": lambda seed: draws.seed_all(seed),
        "manual_seed_all": draws.seed_all,
        "get_rng_state": lambda device=None: draws.generator(_index(device)).get_state(),
        "set_rng_state": lambda state, device=None: draws.generator(_index(device)).set_state(state),
        "get_amp_supported_dtype": NoAutocast,
        "Event": Event,
    }
    vars(module).update(answers)
    return module


def _index(device: Any = None) -> int:
    return LEDGER.index(device if device is None or isinstance(device, int) else torch.device(device).index)


def _set_device(device: Any) -> None:
    LEDGER.current = _index(device)


@contextmanager
def _current(device: Any) -> Iterator[None]:
    """`with torch.sim.device(1):`."""
    before = LEDGER.current
    LEDGER.current = _index(device)
    try:
        yield
    finally:
        LEDGER.current = before


def _mem_get_info(device: Any = None) -> tuple[int, int]:
    index = _index(device)
    return LEDGER.free(index), LEDGER.limit(index)
