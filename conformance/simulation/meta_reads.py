"""A watch over every op for inputs on `meta`, which hold no values.

`torch.mm(cpu, meta)` returns garbage without a word, so errors alone do not show a weight that was left behind.
An op reads `meta` when it is given a tensor there and gives one elsewhere, or a number. Copies to `meta`, and
shapes computed there, read nothing; an op that raises tells it itself.

The same watch sees ops that are given tensors of several devices and give values. A real accelerator refuses them, and
so does the simulated one: this does not ask that one whether it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SHAPE_ONLY = {"aten::empty_like", "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::new_zeros",
              "aten::new_empty", "aten::new_full", "aten::new_ones", "aten::rand_like", "aten::randn_like",
              "aten::randint_like", "aten::new_empty_strided", "aten::resize_as_", "aten::is_pinned",
              "aten::is_same_size", "aten::is_set_to", "aten::_has_same_storage_numel"}  # fmt: skip
COPIES = {"aten::copy_", "aten::_to_copy", "aten::_copy_from", "aten::_copy_from_and_resize"}
TAKE_LENGTHS = {"aten::_pack_padded_sequence", "aten::_pad_packed_sequence"}
TAKE_INDICES = ("aten::index", "aten::_index_put", "aten::_unsafe_index")


class MetaReads(TorchDispatchMode):
    """Counts the ops that read a tensor on `meta`, by name, while it is active; `refused` those that raised at it.

    weights: the parameters and buffers of `model` that were read so, by name, also through views and casts of them,
    and tensors that its modules keep as plain attributes;
    mixed: the ops that took tensors of several devices, by name.
    """

    def __init__(self, model: Any = None) -> None:
        super().__init__()
        self.model = model
        self.reads: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.weights: Counter[str] = Counter()
        self.mixed: Counter[str] = Counter()
        self._made_of: dict[int, list[torch.Tensor]] = {}  # storage → what it was computed from, which is kept alive

    @property
    def seen(self) -> list[str]:
        """The names of all of them, sorted."""
        return sorted({*self.reads, *self.refused})

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Every op passes here."""
        name = str(func._schema.name)
        given = list(_tensors((args, kwargs or {})))
        on_meta = [] if name in SHAPE_ONLY else [one for one in given if one.is_meta]
        if not on_meta:
            result = func(*args, **(kwargs or {}))
            if len(given) > 1 and name not in SHAPE_ONLY and _mixes(name, given):
                self.mixed[name] += 1
            return result
        try:
            result = func(*args, **(kwargs or {}))
        except (RuntimeError, NotImplementedError):  # what a read on `meta` raises, where it is noticed at all
            self.refused[name] += 1
            self.weights.update(self._names(on_meta))
            raise
        made = list(_tensors(result))
        if any(not tensor.is_meta for tensor in made) or (not made and result is not None):
            self.reads[name] += 1
            self.weights.update(self._names(on_meta))
        for tensor in made:
            self._derived(tensor, on_meta)
        return result

    def _derived(self, made: torch.Tensor, given: list[torch.Tensor]) -> None:
        """Remember what a new tensor on `meta` was computed from; a view has the same storage."""
        if self.model is not None and made.is_meta and _storage(made) not in {_storage(one) for one in given}:
            self._made_of[_storage(made)] = [made, *given]

    def _names(self, read: list[torch.Tensor]) -> set[str]:
        """The names under which the model has these tensors, or those that they were computed from, just now."""
        if self.model is None:
            return set()
        storages, found = {_storage(tensor) for tensor in read}, set[int]()
        while storages:
            found |= storages
            parents = (parent for one in storages for parent in self._made_of.get(one, ()))
            storages = {_storage(parent) for parent in parents} - found
        # Of tied ones the first name.
        named = (*self.model.named_parameters(), *self.model.named_buffers(), *plain_tensors(self.model))
        return {name for name, tensor in named if tensor.is_meta and _storage(tensor) in found}


def plain_tensors(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors that modules keep as plain attributes, by name, but for what hooks of torch's compute for a forward."""
    for path, module in model.named_modules():
        computed = {getattr(hook, "name", None) for hook in module._forward_pre_hooks.values()}
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and name not in computed:
                yield f"{path}.{name}".lstrip("."), value


def _mixes(name: str, given: list[torch.Tensor]) -> bool:
    """Whether an op that gave values was given tensors of several devices.

    Numbers, indices and lengths of sequences on the CPU do not count.
    """
    indices = name.startswith(TAKE_INDICES) or name in TAKE_LENGTHS
    free = [one.device.type == "cpu" and (not one.dim() or (indices and not one.is_floating_point())) for one in given]
    return name not in COPIES and len({one.device for one, may in zip(given, free, strict=True) if not may}) > 1


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


class MetaReadsProbe:
    """The watch as a probe of a run: the watch itself, after the call."""

    name = "meta_reads"

    @contextmanager
    def around(self, model: Any, call: Any) -> Iterator[Any]:  # noqa: ARG002
        """Watch one call."""
        with MetaReads(model) as watch:
            yield lambda: watch
