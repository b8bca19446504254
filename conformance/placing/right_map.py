"""Whether a device map is right, by rules that hold for any map and that no planner is asked for.

Where a map is right and the release cannot load or run a model on it, the release is at fault; where it is wrong,
whoever made it is. So nothing here comes from the reference planner: ties are told by the addresses of the unplaced
model's weights, and what must stay together by the classes that the model declares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import torch
from torch import nn

Place = int | str


def wrong_in(model: nn.Module, device_map: Mapping[str, Place], limits: Mapping[Place, float] | None) -> str | None:
    """What is wrong with a map of an unplaced model, or None. limits: the bytes that each place may hold, if any."""
    where = {name: place_in(device_map, name) for name, _ in _every_tensor(model)}
    reasons = (_left_out(model, where), _cut(model, where), _split(model, where), too_much(model, device_map, limits))
    return next((reason for reason in reasons if reason), None)


def place_in(device_map: Mapping[str, Place], name: str) -> Place | None:
    """Where a map puts a tensor: the longest entry that is its name or a module around it says so; None: none does."""
    parts = name.split(".")
    around = (".".join(parts[:length]) for length in range(len(parts), -1, -1))
    return next((device_map[entry] for entry in around if entry in device_map), None)


def _every_tensor(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _left_out(model: nn.Module, where: Mapping[str, Place | None]) -> str | None:
    """What is saved and has no place."""
    left = [name for name in model.state_dict() if where.get(name) is None]
    return f"no entry covers {left[0]} ({len(left)} in all)" if left else None


def _cut(model: nn.Module, where: Mapping[str, Place | None]) -> str | None:
    """A module in two places whose class the model says not to split."""
    whole = set(getattr(model, "_no_split_modules", None) or ())
    for path, module in model.named_modules():
        if type(module).__name__ in whole:
            inside = [f"{path}.{name}" if path else name for name, _ in _every_tensor(module)]
            places = {where[name] for name in inside if where.get(name) is not None}
            if len(places) > 1:
                return f"{path}, a {type(module).__name__}, is not to be split and is on {_listed(places)}"
    return None


def _split(model: nn.Module, where: Mapping[str, Place | None]) -> str | None:
    """Names of one weight in two places."""
    for names in by_address(model):
        places = {where[name] for name in names if where[name] is not None}
        if len(places) > 1:
            return f"{', '.join(names)} are one weight and are on {_listed(places)}"
    return None


def too_much(
    model: nn.Module, device_map: Mapping[str, Place], limits: Mapping[Place, float] | None, buffers: bool = True
) -> str | None:
    """A place that holds more than it may, one weight counted once in each place; buffers: they count, too."""
    held: dict[Place | None, int] = defaultdict(int)
    tensors = dict(_every_tensor(model))
    for names in by_address(model):
        if not buffers and not isinstance(tensors[names[0]], nn.Parameter):
            continue
        for place in {place_in(device_map, name) for name in names}:
            held[place] += tensors[names[0]].numel() * tensors[names[0]].element_size()
    for place, limit in (limits or {}).items():
        if held[place] > limit:
            return f"{place} is given {held[place]} bytes and may hold {int(limit)}"
    return None


def by_address(model: nn.Module) -> list[list[str]]:
    """The names of the model's tensors, those of one weight together."""
    found: dict[tuple[int, torch.Size], list[str]] = defaultdict(list)
    for name, tensor in _every_tensor(model):
        if tensor.numel():
            found[tensor.data_ptr(), tensor.shape].append(name)
    return list(found.values())


def _listed(places: set[Place | None]) -> str:
    return " and ".join(sorted(map(str, places)))
