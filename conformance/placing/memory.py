"""What simulated devices hold while a model is placed, beside what its map gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from conformance.placing.planned_maps import as_named
from conformance.placing.right_map import Place, by_address, place_in
from conformance.reference.tying import named_tensors


def given_by(model: Any, device_map: Mapping[str, Any]) -> Counter[Place | None]:
    """The bytes of the weights that a map gives to each place, one with several names once in each."""
    tensors, found = named_tensors(model), Counter[Place | None]()
    told = {name: as_named(place) for name, place in device_map.items()}
    for names in by_address(model):
        for place in {place_in(told, name) for name in names}:
            found[place] += _bytes(tensors[names[0]])
    return found


def to_spare(*models: Any) -> int:
    """What a device may hold for a while beside its weights: `models` are one in the dtypes before and after loading.

    Every buffer, as what is offloaded runs somewhere and its buffers are there. One weight, of which a loader makes
    another. Each further name of a tied weight: the release makes room by names before it loads.
    """
    of_buffers, further, largest = 0, 0, 0
    for model in models:
        tensors = named_tensors(model)
        of_buffers = max(of_buffers, sum(_bytes(one) for one in {id(one): one for one in model.buffers()}.values()))
        further = max(further, sum((len(names) - 1) * _bytes(tensors[names[0]]) for names in by_address(model)))
        largest = max([largest, *map(_bytes, tensors.values())])
    return of_buffers + further + largest


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
