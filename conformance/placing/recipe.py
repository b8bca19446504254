"""A placement recipe made concrete for one model: names of modules and bytes instead of turns and per cents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import nn

from conformance.plans.placement import Place, PlacementPlan
from conformance.reference.memory import Device
from conformance.reference.planner import make_units
from conformance.reference.tying import named_tensors

UNITS = {"KB": 1000, "KiB": 1024}


@dataclass(frozen=True)
class Recipe:
    """What a subject is asked to do with a model.

    model: the unplaced one, its tensors in the dtypes that the loader gives them, which is what a map is planned for;
    checkpoint: a folder in which it was saved; device_map: module names → devices, or the
    name of a way to plan one within max_memory (bytes, or words as "40KB"); offload_folder: where what goes to the disk
    may be written, None: nowhere;
    dtype: that of the loaded model (None: the unplaced one's); as_devices: a given map is told by `torch.device`s.
    """

    model: Any
    checkpoint: Path
    offload_folder: Path | None
    loader: str
    device_map: dict[str, Device] | str
    max_memory: dict[Device, int | str] | None = None
    offload_buffers: bool = False
    dtype: torch.dtype | None = None
    as_devices: bool = False

    @property
    def told(self) -> dict[str, Any] | str:
        """The device map as the loader is told it. The disk is no device of torch's."""
        if isinstance(self.device_map, str) or not self.as_devices:
            return self.device_map
        return {name: place if place == "disk" else torch.device(place) for name, place in self.device_map.items()}

    @property
    def limits(self) -> dict[Device, int] | None:
        """The bytes that each device may hold, however they are told."""
        return None if self.max_memory is None else {device: _bytes(size) for device, size in self.max_memory.items()}

    @property
    def run_on(self) -> Device:
        """The device on which an offloaded model runs: the first of the map."""
        assert isinstance(self.device_map, Mapping)
        return next(iter(self.device_map.values()))


def recipe_of(plan: PlacementPlan, model: nn.Module, checkpoint: Path, offload_folder: Path) -> Recipe:
    """The plan for this model. Module names come from the reference planner's cut of it."""
    found = _recipe_of(plan, model, checkpoint, None if plan.folder == "none" else offload_folder)
    return replace(found, dtype=loaded_dtype(plan, model), as_devices=plan.spelled == "devices")


def loaded_dtype(plan: PlacementPlan, model: Any) -> torch.dtype:
    """The dtype that the loader is asked for."""
    other = plan.loaded_as if plan.loader == "from_pretrained" else ""
    found: torch.dtype = getattr(torch, other) if other else model.dtype
    return found


def _recipe_of(plan: PlacementPlan, model: nn.Module, checkpoint: Path, offload_folder: Path | None) -> Recipe:
    given = (model, checkpoint, offload_folder, plan.loader)
    if plan.planned:
        return Recipe(*given, plan.map, _memory(plan, model), plan.offload_buffers)
    if plan.map == "whole":
        return Recipe(*given, {"": _device(plan, plan.places[0])}, None, plan.offload_buffers)
    units = make_units(model, set(getattr(model, "_no_split_modules", None) or ()))
    groups = [[name] for unit in units for name in unit.names] if plan.split_tied else [list(u.names) for u in units]
    placed = zip(groups, cycle(plan.places), strict=False)
    device_map: dict[str, Device] = {name: _device(plan, place) for names, place in placed for name in names}
    return Recipe(*given, device_map, None, plan.offload_buffers)


def _device(plan: PlacementPlan, place: Place) -> Device:
    return place.replace("sim", plan.hardware)


def _memory(plan: PlacementPlan, model: nn.Module) -> dict[Device, int | str]:
    devices: list[Device] = [*range(plan.accelerators), "cpu"]
    size = size_of(model, loaded_dtype(plan, model))
    shares = zip(devices, cycle(plan.budget or (100,)))
    return {device: _told(max(1, size * share // 100), plan.limits) for device, share in shares}


def _told(size: int, unit: str) -> int | str:
    """Bytes as a number, or in whole units; what is less than one unit has one."""
    return f"{max(1, size // UNITS[unit])}{unit}" if unit in UNITS else size


def _bytes(size: int | str) -> int:
    if isinstance(size, int):
        return size
    unit = next(unit for unit in UNITS if size.endswith(unit))
    return int(size.removesuffix(unit)) * UNITS[unit]


def size_of(model: nn.Module, dtype: torch.dtype | None = None) -> int:
    """The bytes of a model's weights, each once; dtype: as they would be with their fractions in that."""
    tensors = {id(tensor): tensor for tensor in named_tensors(model).values()}.values()
    return sum(t.numel() * (dtype if dtype and t.is_floating_point() else t.dtype).itemsize for t in tensors)
