"""Copies of a model, several times faster than `copy.deepcopy`: a case needs a handful of them.

Everything but the tensors is pickled once; a copy unpickles that around clones of the tensors. Classes and functions
that are made on the spot have no name to be found by, so a copy refers to them themselves. Nothing is read from
outside: the bytes never leave the process.
"""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections import OrderedDict
from types import FunctionType
from typing import Any

import torch

PICKLED = frozenset({type(None), bool, int, float, str, list, dict, tuple, set, OrderedDict})


class Copier:
    """Makes independent copies of a model that nobody changes. Parameters shared by modules are shared in a copy."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._kept: list[Any] = []
        self._bytes = b""
        file = io.BytesIO()
        try:
            _Pickler(file, self._kept).dump(model)
        except (pickle.PicklingError, AttributeError, TypeError):  # a lock, an open file or the like: see `copy`
            return
        if not _share_storage([value for value in self._kept if isinstance(value, torch.Tensor)]):
            self._bytes = file.getvalue()

    @property
    def pickles(self) -> bool:
        """Whether copies are the fast ones."""
        return bool(self._bytes)

    def copy(self) -> Any:
        """A copy; by `copy.deepcopy` where the model cannot be pickled or its tensors are views of each other."""
        if not self.pickles:
            return copy.deepcopy(self._model)
        return _Unpickler(io.BytesIO(self._bytes), self._kept).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._kept = kept
        self._places: dict[int, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        """The value's place among those that are kept as they are; None for what is pickled."""
        if type(value) in PICKLED:  # asked for thousands of times
            return None
        if not (isinstance(value, torch.Tensor) or (isinstance(value, (type, FunctionType)) and not _is_found(value))):
            return None
        if id(value) not in self._places:
            self._places[id(value)] = len(self._kept)
            self._kept.append(value)
        return self._places[id(value)]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file)
        self._kept = kept
        self._clones: dict[int, torch.Tensor] = {}

    def persistent_load(self, place: int) -> Any:
        """The one clone of that tensor in this copy; a class or a function itself."""
        value = self._kept[place]
        if not isinstance(value, torch.Tensor):
            return value
        if place not in self._clones:
            self._clones[place] = _clone(value)
        return self._clones[place]


def _is_found(value: type | FunctionType) -> bool:
    """Whether unpickling would find the class or function by its name."""
    return getattr(sys.modules.get(value.__module__), value.__qualname__, None) is value


def _clone(tensor: torch.Tensor) -> torch.Tensor:
    clone = tensor.detach().clone()
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(clone, requires_grad=tensor.requires_grad)
    return clone


def _share_storage(tensors: list[torch.Tensor]) -> bool:
    places = [t.untyped_storage().data_ptr() for t in tensors if t.numel() and t.device.type != "meta"]
    return len(set(places)) < len(places)
