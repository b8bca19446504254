"""Faults planted in one layer of a cache, or in the positions of the next token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from conformance import upstream
from conformance.sensitivity.layers import ENTRIES, layers_of_kind

Plant = Callable[[Any], str]


def nothing(_: Any) -> str:
    """The cache as it is."""
    return ""


def shift(inputs: dict[str, Any]) -> str:
    """The next token stands one place further than it does; the cached ones stay."""
    names = [n for n in upstream.POSITIONS if inputs.get(n) is not None]
    if not names:
        return "the forward is given no positions"
    inputs[names[0]] = inputs[names[0]] + 1
    return ""


def planter(kind: str, fault: str, random: np.random.Generator, reach: int | None = None) -> Plant:
    """What plants a fault in one layer of a kind; it says why where there is no place for it.

    reach: how many of the newest entries are sure to be read (None: all of them, in chunks the last).
    """
    reach = 1 if kind == "chunked" else reach

    def plant(cache: Any) -> str:
        layers = list(layers_of_kind(cache, kind))
        entries = [layer for layer in layers if any(ENTRIES.search(name) for name in layer)]
        states = [(n, t) for layer in layers for n, t in layer.items() if not ENTRIES.search(n)]
        if not layers:
            return "nothing of this kind is in the cache: the model keeps it elsewhere, or nothing at all"
        if fault == "entry lost":
            return _lose(entries, reach, random) if entries else "it keeps no entry per token"
        if fault == "state zeroed":
            if not states:
                return "it keeps no state beside its entries"
            states[random.integers(len(states))][1].zero_()
            return ""
        for tensor in layers[random.integers(len(layers))].values():
            tensor.copy_(tensor.flip(0))
        return ""

    return plant


def _lose(layers: list[dict[str, torch.Tensor]], reach: int | None, random: np.random.Generator) -> str:
    """One token's entry in one layer, one of those within reach, becomes zeros."""
    layer = {name: t for name, t in layers[random.integers(len(layers))].items() if ENTRIES.search(name)}
    length = next(tensor.shape[1 if "indexer" in name else -2] for name, tensor in layer.items())
    place = length - 1 - int(random.integers(min(length, reach or length)))
    for name, tensor in layer.items():
        along = 1 if "indexer" in name else tensor.dim() - 2
        if tensor.shape[along] == length:
            tensor.select(along, place).zero_()
    return ""
