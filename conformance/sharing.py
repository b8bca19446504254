"""Which names of a model's weights are one tensor, by where it lies in memory.

Buffers do not count: `Module.to` gives every module new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from conformance.reference.tying import merged

Names = Sequence[str]
Place = tuple[int, int, tuple[int, ...]]


def place_of(tensor: torch.Tensor) -> Place:
    """Where a tensor lies: two names with one place are one weight."""
    return tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape)


def are_one(names: Names, model: Any) -> bool:
    """Whether these names, as far as they are parameters of the model, are one tensor."""
    tensors = _parameters(model)
    return len({place_of(tensors[name]) for name in names if name in tensors}) < 2


def shared(model: Any) -> list[tuple[str, ...]]:
    """The names of every parameter that has several, in order of the first."""
    found: dict[Place, list[str]] = {}
    for name, tensor in _parameters(model).items():
        if tensor.numel():  # empty ones lie nowhere
            found.setdefault(place_of(tensor), []).append(name)
    return [tuple(names) for names in found.values() if len(names) > 1]


def beyond(said: Iterable[Names], model: Any) -> tuple[str, ...]:
    """Names that are one tensor although `said`, which holds names that shall be one, does not lead to that; or ()."""
    leader = {
        name: group[0] for group in merged((names[0], name) for names in said for name in names) for name in group
    }
    return next((names for names in shared(model) if len({leader.get(name, name) for name in names}) > 1), ())


def _parameters(model: Any) -> dict[str, torch.Tensor]:
    return dict(model.named_parameters(remove_duplicate=False))
