"""The state of a cache of any kind, kept and put back in place.

A generic walk over whatever a cache is made of, so that no kind of cache has to be known here: attributes of
objects, lists, mappings and tensors. Tensors are copied, since static and recurrent kinds write into theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

MAX_DEPTH = 12
Undo = Callable[[], None]


class CacheState:
    """What a cache held at one moment. `restore` puts it back into the same objects, as often as wanted."""

    def __init__(self, cache: Any) -> None:
        self._undo: list[Undo] = []
        self._seen: set[int] = set()
        self._keep(cache, 0)

    def restore(self) -> None:
        """Make the cache bitwise what it was: its objects, lists and mappings, and the contents of its tensors."""
        with torch.no_grad():
            for undo in self._undo:
                undo()

    def _keep(self, value: Any, depth: int) -> None:
        if id(value) in self._seen or depth > MAX_DEPTH:
            return
        if isinstance(value, torch.Tensor):
            self._seen.add(id(value))
            self._undo.append(_tensor(value))
            return
        parts = _parts(value)
        if parts is not None:
            self._seen.add(id(value))
            self._undo.append(_container(value))
            for part in parts:
                self._keep(part, depth + 1)


def snapshot(cache: Any) -> CacheState:
    """The state of `cache` now, a cache object or what some types keep in its place (a list of tensors)."""
    return CacheState(cache)


def _parts(value: Any) -> Iterator[Any] | None:
    """What a mutable or immutable container holds; None for anything that has no parts of a cache's own."""
    if isinstance(value, dict):
        return iter(list(value.values()))
    if isinstance(value, list | tuple | set):
        return iter(list(value))
    if _has_state(value):
        return iter(list(vars(value).values()))
    return None


def _has_state(value: Any) -> bool:
    """Whether an object's attributes may be part of a cache's state: no class, module, function or config is."""
    if isinstance(value, type | torch.nn.Module) or callable(value) or not hasattr(value, "__dict__"):
        return False
    return not hasattr(value, "to_diff_dict")  # a config: nothing of a call's, and large


def _container(value: Any) -> Undo:
    if isinstance(value, tuple):
        return lambda: None
    if isinstance(value, list):
        items = list(value)
        return lambda: value.__setitem__(slice(None), items)
    if isinstance(value, dict | set):
        kept = value.copy()
        return lambda: _refill(value, kept)
    attributes = dict(vars(value))
    return lambda: _refill(vars(value), attributes)


def _refill(container: Any, kept: Any) -> None:
    """Only where it differs: some attributes may not be set, but those have not changed either."""
    if isinstance(container, dict) and _same_items(container, kept):
        return
    container.clear()
    container.update(kept)


def _same_items(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return one.keys() == other.keys() and all(one[key] is other[key] for key in one)


def _tensor(tensor: torch.Tensor) -> Undo:
    """An expanded dimension holds one entry many times: only that one is kept and written."""
    narrow = _narrowed(tensor.detach())
    kept = narrow.clone()

    def write() -> None:
        narrow.copy_(kept)

    return write


def _narrowed(tensor: torch.Tensor) -> torch.Tensor:
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor
