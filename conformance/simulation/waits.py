"""Which calls make the host wait for a device, told from their names and arguments.

Outside the model only is counted what is as large as values say: inside it is the model's own, however it is stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

# Calls that give the host a value of a tensor, so that it waits until the device has computed it.
READS = frozenset(
    {"item", "tolist", "cpu", "numpy", "__array__", "__repr__", "__format__"}
    | {"__bool__", "__int__", "__float__", "__index__", "__contains__", "equal", "allclose", "is_nonzero"}
)
INDEXING = frozenset({"__getitem__", "__setitem__"})


def reads(name: str, args: Sequence[Any]) -> bool:
    """Whether a call gives the host a value of a tensor; one as a bound of a slice is read for it."""
    return name in READS or (name in INDEXING and any(map(_has_a_bound, _parts(args[1]))))


def sized_by_values(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether how large the result is, or how much is written, depends on values of a tensor."""
    if name in INDEXING:
        several = name == "__getitem__" or (isinstance(args[2], torch.Tensor) and args[2].numel() > 1)
        return several and any(isinstance(part, torch.Tensor) and part.dtype == torch.bool for part in _parts(args[1]))
    if name == "where":
        return len(args) + len(kwargs) == 1
    if name == "repeat_interleave":
        counts = kwargs.get("repeats", args[-1] if len(args) < 3 else args[1])
        return isinstance(counts, torch.Tensor) and kwargs.get("output_size") is None
    return name.startswith("unique") or (name != "index" and _has_no_shape_of_its_own(name))


def told_to_be_the_hosts(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether `to` was asked for the host by name. A device object may be the simulated one, which is a CPU too."""
    where = kwargs.get("device", args[1] if len(args) > 1 else None)
    return isinstance(where, str) and where == "cpu"


@cache
def _has_no_shape_of_its_own(name: str) -> bool:
    """Whether torch says of an operation that the shape of its output depends on values."""
    operation = getattr(torch.ops.aten, name, None) if not name.startswith("_") else None
    overloads = [] if operation is None else [getattr(operation, overload) for overload in operation.overloads()]
    return any(torch.Tag.dynamic_output_shape in overload.tags for overload in overloads)


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _has_a_bound(part: Any) -> bool:
    """Whether it is a slice that begins or ends where a tensor says."""
    return isinstance(part, slice) and any(isinstance(b, torch.Tensor) for b in (part.start, part.stop, part.step))
