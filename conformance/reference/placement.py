"""Whether a placed model can run: every weight where its module finds it, every tied group one, the map complete.

In one line before `generate`:

    audit_placement(model).raise_if_wrong()

The rules need no accelerator and no forward. Hooks are read by what they carry (`offload`, `weights_map`,
`place_submodules`, `offload_buffers`), as accelerate's have it; nothing is imported from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from conformance.reference.planner import DevicePlan, DoesNotFit, plan_device_map
from conformance.reference.tying import named_tensors, tied_groups

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
    at all. input_device: where token ids belong (`model.device` may be `meta`, where they would be lost).
    """

    stranded: dict[str, str] = field(default_factory=dict)
    split: dict[tuple[str, ...], str] = field(default_factory=dict)
    unmapped: tuple[str, ...] = ()
    mapless: bool = False
    input_device: torch.device = field(default_factory=lambda: torch.device("cpu"))

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
        return "\n".join(self.lines()) or "every weight is where its module finds it"


def audit_placement(model: nn.Module) -> PlacementReport:
    """What keeps a placed model from running; reads offloaded weights, runs nothing."""
    tensors = named_tensors(model)
    replaced = {name for name in tensors if _is_replaced(model, name)}
    asked = [name for name, tensor in tensors.items() if tensor.is_meta or name in replaced]
    stranded = {name: why for name in asked if (why := not_brought(model, name))}
    split = {
        group: where
        for group in tied_groups(model)
        if (where := _split(model, group, tensors, stranded, replaced)) is not None
    }
    device_map = getattr(model, "hf_device_map", None)
    on_meta = any(tensor.is_meta for tensor in tensors.values())
    unmapped = _unmapped(model.state_dict(), device_map) if device_map is not None else ()
    mapless = device_map is None and on_meta
    return PlacementReport(stranded, split, unmapped, mapless, input_device(model))


def input_device(model: nn.Module) -> torch.device:
    """Where token ids belong: where the hook of the input embeddings runs them, else where their weight is."""
    try:
        embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    except NotImplementedError:  # a model of several embeddings that names none
        embeddings = None
    for module in (embeddings, model):
        for hook in _hooks(module) if module is not None else ():
            if getattr(hook, "execution_device", None) is not None:
                return torch.device(hook.execution_device)
    first = next((embeddings or model).parameters(), None)
    return torch.device("cpu") if first is None or first.is_meta else first.device


def _is_replaced(model: nn.Module, name: str) -> bool:
    """Whether the hook on a tensor's own module puts a copy of its own in its place before each forward."""
    module_name, _, tensor_name = name.rpartition(".")
    owner = model.get_submodule(module_name)
    return tensor_name in owner._parameters and any(getattr(hook, "offload", False) for hook in _hooks(owner))


def not_brought(model: nn.Module, name: str) -> str:
    """Why no hook brings the tensor of this name before its module runs; empty when one does."""
    module_name, _, tensor_name = name.rpartition(".")
    reason = "no hook on its module brings it"
    for above, path in _upwards(module_name, tensor_name):
        for hook in _hooks(model.get_submodule(above)):
            if not getattr(hook, "offload", False) or (above != module_name and not hook.place_submodules):
                continue
            problem = _cannot_bring(hook, model.get_submodule(module_name), tensor_name, path)
            if not problem:
                return ""
            reason = problem
    return reason


def _cannot_bring(hook: Any, owner: nn.Module, tensor_name: str, path: str) -> str:
    if tensor_name in owner._buffers and (not hook.offload_buffers or tensor_name in owner._non_persistent_buffers_set):
        return "its hook does not bring this buffer"
    try:
        value = hook.weights_map[path]
    except Exception as error:  # noqa: BLE001 - a missing file, key or map: it cannot bring it
        return f"its hook has no copy of it ({type(error).__name__})"
    return "its hook's copy is itself on meta" if value is None or value.is_meta else ""


def brought_from(model: nn.Module, name: str) -> torch.Tensor | None:
    """The value that a hook would bring for a tensor on `meta`, or None."""
    module_name, _, tensor_name = name.rpartition(".")
    for above, path in _upwards(module_name, tensor_name):
        for hook in _hooks(model.get_submodule(above)):
            try:
                value: torch.Tensor = hook.weights_map[path]
            except Exception:  # noqa: BLE001 - this hook is not the one
                continue
            return value
    return None


def _upwards(module_name: str, tensor_name: str) -> Iterator[tuple[str, str]]:
    """Each module from a tensor's own to the model, with the tensor's name from there."""
    parts = module_name.split(".") if module_name else []
    for kept in range(len(parts), -1, -1):
        yield ".".join(parts[:kept]), ".".join([*parts[kept:], tensor_name])


def _hooks(module: nn.Module) -> Sequence[Any]:
    hook = getattr(module, "_hf_hook", None)
    return () if hook is None else getattr(hook, "hooks", (hook,))


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
