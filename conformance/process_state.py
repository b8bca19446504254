"""What is the process's own, and every later call depends on: torch's switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch


class _Switch(NamedTuple):
    """How it is read, and set; None of one that only its own block can set."""

    read: Callable[[], Any]
    set: Callable[[Any], Any] | None


def _set_default_device(device: torch.device) -> None:
    """The CPU is what torch makes tensors on where nothing is said; saying so costs every later call."""
    torch.set_default_device(None if device.type == "cpu" else device)


_SWITCHES = {
    "gradients": _Switch(torch.is_grad_enabled, torch.set_grad_enabled),
    "inference mode": _Switch(torch.is_inference_mode_enabled, None),
    "autocast": _Switch(lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on)),
    "default dtype": _Switch(torch.get_default_dtype, torch.set_default_dtype),
    "default device": _Switch(torch.get_default_device, _set_default_device),
    "deterministic algorithms": _Switch(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "precision of matrix products": _Switch(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "threads": _Switch(torch.get_num_threads, torch.set_num_threads),
}


def process_state() -> dict[str, str]:
    """Each switch, as `process.NAME` → its value in words."""
    return {f"process.{name}": str(switch.read()) for name, switch in _SWITCHES.items()}


@contextmanager
def switches_put_back() -> Iterator[None]:
    """At the end every switch is as it was at the beginning, whoever changed it."""
    before = {name: switch.read() for name, switch in _SWITCHES.items()}
    try:
        yield
    finally:
        for name, switch in _SWITCHES.items():
            if switch.set is not None and switch.read() != before[name]:
                switch.set(before[name])
