"""A watch over every op for inputs on `meta`, which hold no values.

`torch.mm(cpu, meta)` returns garbage without a word, so errors alone do not show a weight that was left behind.
An op reads `meta` when it is given a tensor there and gives one elsewhere, or a number. Copies to `meta`, and
shapes computed there, read nothing; an op that raises tells it itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SHAPE_ONLY = {"aten::empty_like", "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::new_zeros",
              "aten::new_empty", "aten::new_full", "aten::new_ones", "aten::rand_like", "aten::randn_like",
              "aten::new_empty_strided"}  # fmt: skip


class MetaReads(TorchDispatchMode):
    """Counts the ops that read a tensor on `meta`, by name, while it is active; `refused` those that raised at it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    @property
    def seen(self) -> list[str]:
        """The names of all of them, sorted."""
        return sorted({*self.reads, *self.refused})

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Every op passes here."""
        name = str(func._schema.name)
        given = list(_tensors((args, kwargs or {})))
        if name in SHAPE_ONLY or not any(tensor.is_meta for tensor in given):
            return func(*args, **(kwargs or {}))
        try:
            result = func(*args, **(kwargs or {}))
        except (RuntimeError, NotImplementedError):  # what a read on `meta` raises, where it is noticed at all
            self.refused[name] += 1
            raise
        made = list(_tensors(result))
        if any(not tensor.is_meta for tensor in made) or (not made and result is not None):
            self.reads[name] += 1
        return result


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, Iterable) and isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


class MetaReadsProbe:
    """The watch as a probe of a run: its value is op name → how many times it read `meta`."""

    name = "meta_reads"

    @contextmanager
    def around(self, model: Any, call: Any) -> Iterator[Any]:  # noqa: ARG002
        """Watch one call."""
        watch = MetaReads()
        with watch:
            yield lambda: dict(watch.reads)
