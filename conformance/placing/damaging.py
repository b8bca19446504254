"""What is damaged of a model before it is audited: what a loader, a planner or a caller may get wrong, one at a time.

Each takes a model and the number of what it damages, and gives the names, any of which tells of it; or why not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from conformance.placing.refusing import is_telling
from conformance.plans.placement import PlacementPlan
from conformance.plans.placement_told import LEFT_ON_META
from conformance.reference.bringing import hooks_of, is_replaced, run_on
from conformance.reference.planner import make_units
from conformance.reference.tying import declared_pairs, merged, named_tensors, tied_groups

Names = list[str]


def damage(plan: PlacementPlan, model: Any) -> Names | str:
    """Damage a model as a plan says: the names that tell of it, or why there is nothing in the model to damage so."""
    return KINDS[plan.damage](model, plan.stranded or 0)


def of_a_placed(plan: PlacementPlan) -> bool:
    """Whether what is damaged is there only once a model was placed."""
    return plan.damage not in (*LEFT_ON_META, "untied")


def strand(model: nn.Module, number: int) -> Names:
    """Put the parameters of one part on `meta`, with no hook; the names of those that are lost."""
    parts = make_units(model, set(getattr(model, "_no_split_modules", None) or ()))
    sized = [unit for unit in parts if _parameters(model, unit.names)]
    lost = _parameters(model, sized[number % len(sized)].names) if sized else []
    for name in lost:
        _put(model, name, torch.empty_like(model.get_parameter(name), device="meta"))
    return lost


def _parameters(model: nn.Module, units: tuple[str, ...]) -> Names:
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    return [name for name in names if any(name == u or u == "" or name.startswith(f"{u}.") for u in units)]


def _put(model: nn.Module, name: str, tensor: torch.Tensor) -> None:
    """Another tensor under a name: a parameter where one was, else a buffer."""
    owner, own = _owner(model, name)
    if own in owner._parameters:
        owner._parameters[own] = nn.Parameter(tensor, requires_grad=False)
    else:
        owner._buffers[own] = tensor


def _owner(model: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, own = name.rpartition(".")
    return model.get_submodule(path), own


def _strand_parameters(model: nn.Module, number: int) -> Names | str:
    return strand(model, number) or "the model has no parameters"


def _strand_a_buffer(model: nn.Module, number: int) -> Names | str:
    names = [name for name, buffer in model.named_buffers() if not buffer.is_meta]
    if not names:
        return "the model has no buffers"
    name = names[number % len(names)]
    _put(model, name, torch.empty_like(model.get_buffer(name), device="meta"))
    return [name]


def _untie(model: nn.Module, number: int) -> Names | str:
    """A copy of its own for the last name of a group that the model declares: what is shared unsaid leaves no trace."""
    groups = merged(declared_pairs(model).items())
    if not groups:
        return "the model declares no tied weights"
    group = groups[number % len(groups)]
    _put(model, group[-1], model.get_parameter(group[-1]).detach().clone())
    return list(group)


def _move(model: nn.Module, number: int) -> Names | str:
    """One tensor on another device than the one on which hooks run its module; a number may be anywhere."""
    tied = {name for group in tied_groups(model) for name in group}
    found = {name: tensor for name, tensor in named_tensors(model).items() if not tensor.is_meta and tensor.dim()}
    names = [name for name in found if name not in tied and run_on(model, name) and not is_replaced(model, name)]
    if not names:
        return "no hook says where a module runs"
    name = names[number % len(names)]
    others = {tensor.device for tensor in found.values()} | {torch.device("cpu")}
    elsewhere = sorted((device for device in others if device != run_on(model, name)), key=str)
    if not elsewhere:
        return "there is no other device"
    _put(model, name, found[name].detach().to(elsewhere[-1]))
    return [name]


def _unmap(model: Any, number: int) -> Names | str:
    """One entry less in the map that the model has, of a module with a name that is none of any word."""
    found = getattr(model, "hf_device_map", None)
    device_map: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    entries = list(device_map)
    uncovered = {entry: _only_under(entry, entries, model.state_dict()) for entry in entries if len(entries) > 1}
    telling = [entry for entry, names in uncovered.items() if any(is_telling(n.rpartition(".")[0]) for n in names)]
    if not telling:
        return "the model has no map with an entry to spare"
    entry = telling[number % len(telling)]
    model.hf_device_map = {name: place for name, place in device_map.items() if name != entry}
    return [*filter(is_telling, (entry,)), *uncovered[entry]]


def _only_under(entry: str, entries: Names, names: Mapping[str, Any]) -> Names:
    """The tensors that are saved and that one entry of a map covers, and no other."""
    return [n for n in names if _covers(entry, n) and not any(_covers(e, n) for e in entries if e != entry)]


def _covers(entry: str, name: str) -> bool:
    return entry in ("", name) or name.startswith(f"{entry}.")


class _Without(Mapping[str, Any]):
    """What a hook has copies of, but for one."""

    def __init__(self, copies: Mapping[str, Any], lost: str) -> None:
        self.copies, self.lost = copies, lost

    def __getitem__(self, name: str) -> Any:
        if name == self.lost:
            raise KeyError(name)
        return self.copies[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.copies if name != self.lost)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _lose_a_copy(model: nn.Module, number: int) -> Names | str:
    names = [name for name in named_tensors(model) if _bringing(model, name) is not None]
    if not names:
        return "no hook brings a weight"
    name = names[number % len(names)]
    hook = _bringing(model, name)
    hook.weights_map = _Without(hook.weights_map, _owner(model, name)[1])
    return [name]


def _bringing(model: nn.Module, name: str) -> Any:
    """The hook on a tensor's own module that has a copy of it to bring, or None."""
    owner, own = _owner(model, name)
    for hook in hooks_of(owner) if own in owner._parameters else ():
        if getattr(hook, "offload", False) and own in (getattr(hook, "weights_map", None) or ()):
            return hook
    return None


KINDS: dict[str, Callable[[Any, int], Names | str]] = {
    "weights": _strand_parameters,
    "buffer": _strand_a_buffer,
    "untied": _untie,
    "moved": _move,
    "unmapped": _unmap,
    "no copy": _lose_a_copy,
}
