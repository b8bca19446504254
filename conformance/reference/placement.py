"""Whether a placed model can run: every weight where its module finds it, every tied group one, the map complete.

In one line before `generate`:

    audit_placement(model).raise_if_wrong()

That needs no accelerator and no forward: hooks are read by what they carry. A weight that another module than its own
reads is not brought then, and no hook tells; something small to run does, and the weight is named before `generate`:

    audit_placement(model, trial=lambda: model(input_ids)).raise_if_wrong()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from conformance.reference.bringing import brought_from, hooks_of, is_replaced, not_brought
from conformance.reference.planner import DevicePlan, DoesNotFit, plan_device_map
from conformance.reference.tying import named_tensors, tied_groups
from conformance.simulation.meta_reads import MetaReads

__all__ = ["DevicePlan", "DoesNotFit", "PlacementError", "PlacementReport", "audit_placement", "plan_device_map"]


class PlacementError(RuntimeError):
    """A model that cannot run where its weights are; the message names each weight, and what to do."""

    def __init__(self, report: PlacementReport) -> None:
        self.report = report
        super().__init__(str(report))


@dataclass(frozen=True)
class PlacementReport:
    """What is wrong with a placed model; every list is empty when nothing is.

    stranded: parameter or buffer that will not be there when its module runs → why; split: tied group → where its
    members are; unmapped: modules with weights that `hf_device_map` does not cover; mapless: offloaded, and no map
    at all, though something is stranded or several devices run: `cpu_offload` and `disk_offload`, on one device, give
    none. input_device: where token ids belong; ids_would_be_lost: `model.device` is `meta`, so that ids are not to be
    moved there. The model runs all the same, and nothing is wrong with it.
    """

    stranded: dict[str, str] = field(default_factory=dict)
    split: dict[tuple[str, ...], str] = field(default_factory=dict)
    unmapped: tuple[str, ...] = ()
    mapless: bool = False
    input_device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    ids_would_be_lost: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.stranded or self.split or self.unmapped or self.mapless)

    def raise_if_wrong(self) -> None:
        """Raise PlacementError when anything is wrong."""
        if not self.ok:
            raise PlacementError(self)

    def lines(self) -> Iterator[str]:
        """One line for each thing that is wrong."""
        for name, why in self.stranded.items():
            yield f"{name} cannot be used where it is: {why}; load it, or map its module to a device that holds it"
        for group, where in self.split.items():
            yield f"tied weights {', '.join(group)} are no longer one: {where}; map their modules to one device"
        for module in self.unmapped:
            yield f"{module or 'the model'} is missing from hf_device_map: add it to the device map"
        if self.mapless:
            yield "weights are on meta and the model has no hf_device_map: it was not dispatched; dispatch it"

    def __str__(self) -> str:
        lines = [*self.lines()] or ["every weight is where its module finds it"]
        if self.ids_would_be_lost:
            lines.append(f"model.device is meta: put token ids on {self.input_device}, and give generate a prompt")
        return "\n".join(lines)


def audit_placement(model: nn.Module, trial: Callable[[], Any] | None = None) -> PlacementReport:
    """What keeps a placed model from running; reads offloaded weights.

    trial: something small that runs the model, as one forward: what it reads on `meta` is named, too. Without one,
    nothing is run. An exception of its own, where it has read nothing there, passes through.
    """
    tensors = named_tensors(model)
    replaced = {name for name in tensors if is_replaced(model, name)}
    asked = [name for name, tensor in tensors.items() if tensor.is_meta or name in replaced]
    stranded = {name: why for name in asked if (why := not_brought(model, name))}
    if trial is not None and not stranded:
        stranded = _read_in_vain(model, trial)
    split = {
        group: where
        for group in tied_groups(model)
        if (where := _split(model, group, tensors, stranded, replaced)) is not None
    }
    device_map = getattr(model, "hf_device_map", None)
    on_meta = any(tensor.is_meta for tensor in tensors.values())
    mapless = device_map is None and on_meta and (bool(stranded) or len(_run_on(model)) > 1)
    unmapped = _unmapped(model.state_dict(), device_map) if device_map is not None else ()
    first = next(model.parameters(), None)  # which `model.device` is taken from
    lost = first is not None and first.is_meta
    return PlacementReport(stranded, split, unmapped, mapless, input_device(model), lost)


def _read_in_vain(model: nn.Module, trial: Callable[[], Any]) -> dict[str, str]:
    """The weights that a run reads while they are on `meta`."""
    watch = MetaReads(model)
    try:
        with torch.no_grad(), watch:
            trial()
    except Exception:
        if not watch.weights:
            raise
    return dict.fromkeys(sorted(watch.weights), "another module reads it, before which no hook brings it")


def _run_on(model: nn.Module) -> set[torch.device]:
    """The devices on which hooks run modules."""
    found = (getattr(hook, "execution_device", None) for module in model.modules() for hook in hooks_of(module))
    return {torch.device(place) for place in found if place is not None}


def input_device(model: nn.Module) -> torch.device:
    """Where token ids belong: where the hook of the input embeddings runs them, else where their weight is."""
    try:
        embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    except NotImplementedError:  # a model of several embeddings that names none
        embeddings = None
    for module in (embeddings, model):
        for hook in hooks_of(module) if module is not None else ():
            if getattr(hook, "execution_device", None) is not None:
                return torch.device(hook.execution_device)
    first = next((embeddings or model).parameters(), None)
    return torch.device("cpu") if first is None or first.is_meta else first.device


def _split(
    model: nn.Module,
    group: Sequence[str],
    tensors: Mapping[str, torch.Tensor],
    stranded: Mapping[str, str],
    replaced: set[str],
) -> str | None:
    """How the members of a tied group came apart, or None. Those stranded on `meta` are named as such already."""
    members = {name: tensors[name] for name in group if name in tensors}
    members = {name: tensor for name, tensor in members.items() if not (tensor.is_meta and name in stranded)}
    offloaded = [name for name, tensor in members.items() if tensor.is_meta or name in replaced]
    kept = [name for name in members if name not in offloaded]
    if offloaded and kept:
        return f"{', '.join(offloaded)} offloaded, {', '.join(kept)} on {members[kept[0]].device}"
    places = {str(members[name].device) for name in kept}
    if len(places) > 1:
        return f"on {', '.join(sorted(places))}"
    if len({members[name].data_ptr() for name in kept}) > 1:
        return f"each has its own storage on {places.pop()}"
    values = [value for name in offloaded if (value := brought_from(model, name)) is not None]
    if any(not torch.equal(value, values[0]) for value in values[1:]):
        return "their offloaded copies hold different values"
    return None


def _unmapped(tensors: Mapping[str, torch.Tensor], device_map: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules with weights of their own that no entry of the map covers; constants that are not saved are none."""
    found = {
        name.rpartition(".")[0]
        for name in tensors
        if not any(entry in ("", name) or name.startswith(f"{entry}.") for entry in device_map)
    }
    return tuple(sorted(found))
