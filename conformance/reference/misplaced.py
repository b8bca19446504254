"""Refuse, before anything runs, to decode with a parameter that has no values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from conformance.reference.bringing import hooks_of


class MisplacedParameterError(RuntimeError):
    """A parameter or buffer is on `meta` and no hook brings its values when they are needed."""

    def __init__(self, name: str, shape: Any, others: int) -> None:
        more = f", as {others} others are" if others else ""
        super().__init__(
            f"{name}, of shape {tuple(shape)}, is on the meta device{more}, and nothing is to load its values; "
            "load the checkpoint, or offload it with accelerate.dispatch_model, before generating"
        )


def refuse_misplaced(model: Any) -> None:
    """Raise MisplacedParameterError naming the first parameter, else buffer, that has no values; costs no forward."""
    found = sorted(misplaced(model), key=lambda named: not isinstance(named[1], torch.nn.Parameter))
    if found:
        name, tensor = found[0]
        raise MisplacedParameterError(name, tensor.shape, len(found) - 1)


def misplaced(model: Any) -> Iterator[tuple[str, Any]]:
    """Names and tensors on `meta` that no offload hook of accelerate stands for."""
    for place, module in model.named_modules():
        names = [*module._parameters.items(), *module._buffers.items()]
        on_meta = [(leaf, tensor) for leaf, tensor in names if tensor is not None and tensor.is_meta]
        if on_meta and not _offloaded(model, place):
            yield from ((f"{place}.{leaf}".lstrip("."), tensor) for leaf, tensor in on_meta)


def _offloaded(model: Any, place: str) -> bool:
    """Whether a hook on the module, or on one around it that also places what is inside, loads its values."""
    parts = place.split(".") if place else []
    above = [".".join(parts[:kept]) for kept in range(len(parts), -1, -1)]
    return any(
        getattr(hook, "offload", False) and (path == place or getattr(hook, "place_submodules", False))
        for path in above
        for hook in hooks_of(model.get_submodule(path))
    )
