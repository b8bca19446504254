"""Copies of a model, several times faster than `copy.deepcopy`: a case needs a handful of them.

Everything but the tensors is pickled once; a copy unpickles that around clones of the tensors. Nothing is read from
outside: the bytes never leave the process.
"""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import torch


class Copier:
    """Makes independent copies of a model that nobody changes. Parameters shared by modules are shared in a copy."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tensors: list[torch.Tensor] = []
        self._bytes = b""
        file = io.BytesIO()
        try:
            _Pickler(file, self._tensors).dump(model)
        except (pickle.PicklingError, AttributeError, TypeError):  # a local function or the like: see `copy`
            return
        if not _share_storage(self._tensors):
            self._bytes = file.getvalue()

    def copy(self) -> Any:
        """A copy; by `copy.deepcopy` where the model cannot be pickled or its tensors are views of each other."""
        if not self._bytes:
            return copy.deepcopy(self._model)
        return _Unpickler(io.BytesIO(self._bytes), self._tensors).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, tensors: list[torch.Tensor]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._tensors, self._places = tensors, {}  # type: ignore[var-annotated]

    def persistent_id(self, value: Any) -> int | None:
        """The tensor's place among those to clone; None for what is pickled."""
        if not isinstance(value, torch.Tensor):
            return None
        if id(value) not in self._places:
            self._places[id(value)] = len(self._tensors)
            self._tensors.append(value)
        return int(self._places[id(value)])


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tensors: list[torch.Tensor]) -> None:
        super().__init__(file)
        self._tensors, self._clones = tensors, {}  # type: ignore[var-annotated]

    def persistent_load(self, place: int) -> torch.Tensor:
        """The one clone of that tensor in this copy."""
        if place not in self._clones:
            self._clones[place] = _clone(self._tensors[place])
        clone: torch.Tensor = self._clones[place]
        return clone


def _clone(tensor: torch.Tensor) -> torch.Tensor:
    clone = tensor.detach().clone()
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(clone, requires_grad=tensor.requires_grad)
    return clone


def _share_storage(tensors: list[torch.Tensor]) -> bool:
    places = [t.untyped_storage().data_ptr() for t in tensors if t.numel() and t.device.type != "meta"]
    return len(set(places)) < len(places)
