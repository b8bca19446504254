"""How much a map may put where, as the caller says it: checked, and in words where it makes no sense."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

DISK = "disk"
UNLIMITED = float("inf")
Device = int | str


def limits_of(max_memory: Any, *, disk: bool) -> dict[Device, float]:
    """The bytes that each device may hold, the disk's without a limit, if it is allowed. Raises ValueError, a line."""
    if not isinstance(max_memory, Mapping):
        valid = "device → bytes, such as {0: 2_000_000, 'cpu': 20_000}"
        raise ValueError(f"max_memory is {max_memory!r:.40}; valid: {valid}")
    limits: dict[Device, float] = {}
    for device, size in max_memory.items():
        if isinstance(device, bool) or not isinstance(device, int | str):
            raise ValueError(f"max_memory names {device!r:.40}; valid: 'cpu', or the number of an accelerator")
        if device != DISK:
            limits[device] = _bytes(device, size)
    if not limits:
        raise ValueError("max_memory names no device that can run a forward; valid: 'cpu', or numbers of accelerators")
    return limits | ({DISK: UNLIMITED} if disk else {})


def _bytes(device: Device, size: Any) -> float:
    """What a device may hold, if it is a number of bytes."""
    if isinstance(size, bool) or not isinstance(size, Real) or math.isnan(size) or size < 0:
        raise ValueError(f"max_memory[{device!r}] is {size!r:.40}; valid: bytes, a number from 0 on, or float('inf')")
    return float(size)
