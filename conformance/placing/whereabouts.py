"""Where the tensors of a placed model are and are brought to, and where its map says that they are.

Where a map puts a tensor: the longest entry that is its name or a module around it. What that means:

* an accelerator, or `cpu` where the map names no accelerator: the tensor is held there;
* `disk`, or `cpu` where the map names an accelerator: a parameter is on `meta`, or a hook puts a copy of its own in its
  place; the hook brings it to the main device: the CPU, or one of the map's accelerators, the same for all. The
  documentation says that it is the first of the map, the release takes any;
* of what is offloaded so, a buffer is held on the main device, unless buffers are offloaded, too, and it is saved;
* where a map with accelerators tells the CPU as a `torch.device` and not by its word, what is there may be held and run
  there: so the release takes it;
* `cpu_offload` and `disk_offload` offload all, and the main device is the one that they were told.

Free to be in more than one place: a tied weight in any place of its group, and a tensor of the model itself, which is
in no module, on the main device as well. What no entry covers is told by `map-covers-the-model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from conformance.placing.recipe import Recipe
from conformance.placing.right_map import place_in
from conformance.plans.placement_told import OFFLOADERS
from conformance.reference.bringing import brought_to, is_replaced, same_device
from conformance.reference.tying import named_tensors, tied_groups

OFFLOADED = ("disk", "cpu")


@dataclass(frozen=True)
class Where:
    """One tensor: the device that holds it (None: `meta`), the one it is brought to (None: it is not).

    saved: it is a parameter or a buffer that is saved; buffer: it is no parameter.
    """

    held: torch.device | None
    brought: torch.device | None
    buffer: bool
    saved: bool

    def __str__(self) -> str:
        brought = f"brought to {self.brought}" if self.brought else "brought nowhere"
        return brought if self.held is None else f"on {self.held}" + (f" and {brought}" if self.brought else "")


def whereabouts(model: Any) -> dict[str, Where]:
    """Of every parameter and buffer, as the model is now."""
    saved, parameters = model.state_dict(), dict(model.named_parameters(remove_duplicate=False))
    found = {}
    for name, tensor in named_tensors(model).items():
        brings = tensor.is_meta or is_replaced(model, name)
        brought = brought_to(model, name) if brings else None
        held = None if tensor.is_meta else tensor.device
        found[name] = Where(held, brought, name not in parameters, name in saved)
    return found


@dataclass(frozen=True)
class Told:
    """What a placement was told, its devices as torch names them: the map, and what is free to be in more places.

    hardware: what a number stands for; main: the devices of which one runs what is offloaded; all_offloaded: whatever
    the map says; groups: tied weights; cpu_may_run: the CPU is told as a `torch.device`.
    """

    hardware: str
    device_map: Mapping[str, str]
    main: tuple[str, ...]
    all_offloaded: bool
    offload_buffers: bool
    groups: tuple[tuple[str, ...], ...]
    cpu_may_run: bool = False


def told(model: Any, device_map: Mapping[str, Any], recipe: Recipe, hardware: str) -> Told:
    """The terms of a map of an unplaced model, by a loader that offloads all, or as the map says."""
    devices = {name: _named(place, hardware) for name, place in device_map.items()}
    accelerators = tuple(dict.fromkeys(place for place in devices.values() if place not in OFFLOADED))
    all_offloaded, groups = recipe.loader in OFFLOADERS, tuple(tied_groups(model))
    given = recipe.told.values() if isinstance(recipe.told, Mapping) else ()
    may_run = any(isinstance(place, torch.device) and place.type == "cpu" for place in given)
    return Told(hardware, devices, accelerators or ("cpu",), all_offloaded, recipe.offload_buffers, groups, may_run)


def _named(place: Any, hardware: str) -> str:
    """As torch names it; an accelerator may be a number."""
    named = str(place)
    return f"{hardware}:{named}" if named.isdigit() else f"{named}:0" if named == hardware else named


def split_by(terms: Told) -> set[str]:
    """The tied weights that the map itself puts in several places: one of their modules runs elsewhere."""
    found = (group for group in terms.groups if len({place_in(terms.device_map, name) for name in group} - {None}) > 1)
    return {name for group in found for name in group}


def out_of_place(terms: Told, found: Mapping[str, Where]) -> str | None:
    """The first tensor that is elsewhere than its map says, and where; None where all are in place."""
    wrong = {main: _wrong(terms, found, main) for main in terms.main}
    return None if None in wrong.values() else next(iter(wrong.values()))


def _wrong(terms: Told, found: Mapping[str, Where], main: str) -> str | None:
    group_of = {name: group for group in terms.groups for name in group}
    for name, where in found.items():
        places = {
            place for one in group_of.get(name, (name,)) if (place := place_in(terms.device_map, one)) is not None
        }
        if not places or (where.held is None and where.brought is None):
            continue  # not covered, or stranded: other checks tell
        allowed = [_is_held(terms, str(place), where, main) for place in places]
        if any(allowed) or ("." not in name and where.held is not None and str(where.held) == main):
            continue
        return f"{name} is {where}, and the map says {' or '.join(sorted(map(str, places)))}"
    return None


def _is_held(terms: Told, place: str, where: Where, main: str) -> bool:
    """Whether a tensor is where one place of a map has it, what is offloaded running on `main`."""
    offloaded = terms.all_offloaded or place == "disk" or (place == "cpu" and main != "cpu")
    kept = place != "disk" and where.held is not None and where.brought is None
    if not offloaded or (terms.cpu_may_run and place == "cpu" and kept):
        return kept and same_device(where.held, torch.device(place))
    if where.buffer and not (terms.offload_buffers and where.saved):
        return where.held is not None and same_device(where.held, torch.device(main))
    return where.brought is not None and same_device(where.brought, torch.device(main))


def told_otherwise(terms: Told, reported: Mapping[str, Any], names: Mapping[str, Where]) -> str | None:
    """The first tensor that the map of a placed model puts elsewhere than the one that was asked for, or None."""
    said = {name: _named(place, terms.hardware) for name, place in reported.items()}
    for name in names:
        asked, got = place_in(terms.device_map, name), place_in(said, name)
        if None not in (asked, got) and asked != got:
            return f"{name} on {got}, and the map asked for says {asked}"
    return None


def moved(before: Mapping[str, Where], after: Mapping[str, Where]) -> dict[str, str]:
    """The weights that are elsewhere than before, or are brought elsewhere, and how.

    Nothing of one that is brought need be held: where a hook puts a copy of its own in the place of a weight that was
    there, that is away after the first forward. Buffers that are not saved are none: a forward may compute them anew.
    """
    found = {}
    for name, where in before.items():
        now = after.get(name)
        if where.saved and (now is None or not _stayed(where, now)):
            found[name] = f"was {where}, and is {now or 'no longer there'}"
    return found


def _stayed(before: Where, now: Where) -> bool:
    away = now.held is None and now.brought is not None
    return before.brought == now.brought and (before.held == now.held or away)
