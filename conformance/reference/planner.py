"""Plan a device map that keeps tied groups together and fits the memory, or say by how much it does not.

The rules, from what a dispatched forward needs:

* a module whose class must not be split, or that reads tensors of its own beside its children, goes whole: its
  forward finds them only where its hook put them. Tensors of the model itself go to the main device;
* a module with none of those classes in it goes whole too: nothing says that its forward takes parts elsewhere;
* units that share a tied parameter go to the same place, and a tied parameter takes its room once;
* when something is offloaded (to the disk; to the CPU where there is an accelerator), the main device keeps room
  for the largest piece that a hook brings at once: the direct tensors of one module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from conformance.reference.memory import DISK, UNLIMITED, Device, limits_of
from conformance.reference.tying import merged, named_tensors, tied_groups


class DoesNotFit(ValueError):
    """No map fits; `short` is the number of bytes that are missing."""

    def __init__(self, short: int, unit: Sequence[str], room: Mapping[Device, float]) -> None:
        self.short = short
        names, rest = ", ".join(unit[:4]), f" and {len(unit) - 4} more" if len(unit) > 4 else ""
        left = ", ".join(f"{device}: {int(size)}" for device, size in room.items() if size != UNLIMITED)
        super().__init__(
            f"the model does not fit: {short} bytes are missing, first for {names}{rest}; "
            f"bytes left: {left or 'none'}. Allow that much more on one device, or allow the disk"
        )


@dataclass
class DevicePlan:
    """A device map in the order of the model's modules, and the bytes of weights on each device."""

    device_map: dict[str, Device] = field(default_factory=dict)
    used: dict[Device, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Unit:
    """Module (or tensor) names that go to one place together, and the bytes they take there."""

    names: tuple[str, ...]
    size: int
    pinned: bool = False


def plan_device_map(
    model: nn.Module, max_memory: Mapping[Device, float], *, no_split: Sequence[str] = (), disk: bool = True
) -> DevicePlan:
    """A map over the devices of `max_memory` (device → bytes, in order of preference), and the disk if allowed.

    `no_split` adds class names to the model's own `_no_split_modules`. Raises DoesNotFit, and
    ValueError where `max_memory` says no bytes.
    """
    limits = limits_of(max_memory, disk=disk)
    units = make_units(model, {*no_split, *(getattr(model, "_no_split_modules", None) or ())})
    main = next(iter(limits))
    try:
        return _pack(units, limits, main, reserve=0, allowed=lambda device: not _offloaded(device, main))
    except DoesNotFit:
        if not any(_offloaded(device, main) for device in limits):
            raise
        return _pack(units, limits, main, reserve=largest_piece(model), allowed=lambda _: True)


def _offloaded(device: Device, main: Device) -> bool:
    return device == DISK or (device == "cpu" and main != "cpu")


def _pack(
    units: Sequence[Unit], limits: Mapping[Device, float], main: Device, reserve: int, allowed: Callable[[Device], bool]
) -> DevicePlan:
    """In the model's order where that fits, so that neighbours stay together; else the largest first."""
    room = {device: size for device, size in limits.items() if allowed(device)}
    room[main] -= reserve
    if room[main] < 0:
        raise DoesNotFit(int(-room[main]), ["the largest piece that has to be brought back"], limits)
    try:
        return _fill(units, dict(room), main, _onwards)
    except DoesNotFit:
        largest_first = sorted(units, key=lambda unit: (not unit.pinned, -unit.size))
        return _ordered(_fill(largest_first, dict(room), main, _anywhere), units)


def _onwards(devices: list[Device], last: Device) -> list[Device]:
    return devices[devices.index(last) :]


def _anywhere(devices: list[Device], _: Device) -> list[Device]:
    return devices


def _fill(
    units: Sequence[Unit],
    room: dict[Device, float],
    main: Device,
    candidates: Callable[[list[Device], Device], list[Device]],
) -> DevicePlan:
    plan = DevicePlan(used=dict.fromkeys(room, 0))
    devices, last = list(room), main
    for at, unit in enumerate(units):
        places = [main] if unit.pinned else candidates(devices, last)
        place = next((device for device in places if unit.size <= room[device]), None)
        if place is None:
            raise DoesNotFit(_short(units[at:], room, places), unit.names, room)
        room[place] -= unit.size
        plan.used[place] += unit.size
        plan.device_map |= dict.fromkeys(unit.names, place)
        last = last if unit.pinned else place
    return plan


def _short(left: Sequence[Unit], room: Mapping[Device, float], places: Sequence[Device]) -> int:
    """The bytes that are missing in all, or on one device for the first unit where there is room enough in pieces."""
    in_all = sum(unit.size for unit in left) - sum(room.values())
    return int(max(in_all, left[0].size - max(room[place] for place in places)))


def _ordered(plan: DevicePlan, units: Sequence[Unit]) -> DevicePlan:
    order = [name for unit in units for name in unit.names]
    return DevicePlan({name: plan.device_map[name] for name in order}, plan.used)


def make_units(model: nn.Module, no_split: set[str]) -> list[Unit]:
    """The pieces of a model that can be placed independently, tied ones merged, in the model's order."""
    names = list(_atoms(model, "", no_split))
    groups = tied_groups(model)
    pairs = [(unit_of(group[0], names), unit_of(name, names)) for group in groups for name in group]
    together = merged(pairs)
    of_group = {name: group for group in together for name in group}
    tensors, units, seen = named_tensors(model), [], set[str]()
    for name in names:
        if name in seen:
            continue
        members = sorted(of_group.get(name, (name,)), key=names.index)
        seen |= set(members)
        pinned = any("." not in member and member in tensors for member in members)
        units.append(Unit(tuple(members), _bytes(members, tensors, groups), pinned))
    return units


def unit_of(tensor: str, units: Sequence[str]) -> str:
    """The unit that holds a tensor: the longest of them that is its name or a module above it."""
    above = [unit for unit in units if unit == tensor or unit == "" or tensor.startswith(f"{unit}.")]
    if not above:
        raise KeyError(f"{tensor} is in none of the units of the map")
    return max(above, key=len)


def _atoms(module: nn.Module, name: str, no_split: set[str]) -> Iterator[str]:
    children = dict(module.named_children())
    direct = [*dict(module.named_parameters(recurse=False)), *dict(module.named_buffers(recurse=False))]
    can_be_cut = any(type(part).__name__ in no_split for part in module.modules())
    whole = type(module).__name__ in no_split or not children or (name and (direct or not can_be_cut))
    if whole:
        if name == "" or next(iter(module.state_dict()), None) or any(True for _ in module.buffers()):
            yield name
        return
    yield from direct  # of the model itself only: elsewhere they make a module whole
    for child_name, child in children.items():
        yield from _atoms(child, f"{name}.{child_name}" if name else child_name, no_split)


def _bytes(units: Sequence[str], tensors: Mapping[str, torch.Tensor], groups: Sequence[Sequence[str]]) -> int:
    """The room that these units take together, each tied group once."""
    first = {name: group[0] for group in groups for name in group}
    held = {
        first.get(name, name): tensor
        for name, tensor in tensors.items()
        if any(name == unit or unit == "" or name.startswith(f"{unit}.") for unit in units)
    }
    return sum(tensor.numel() * tensor.element_size() for tensor in held.values())


def largest_piece(model: nn.Module) -> int:
    """The bytes of the largest set of direct tensors of one module: what a hook brings at once."""
    return max((_direct_bytes(module) for module in model.modules()), default=0)


def _direct_bytes(module: nn.Module) -> int:
    direct = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    return sum(tensor.numel() * tensor.element_size() for tensor in direct)
