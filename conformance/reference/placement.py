"""Whether a placed model can run: every weight where its module finds it, every tied group one, the map complete.

In one line before `generate`:

    audit_placement(model).raise_if_wrong()

That needs no accelerator and no forward: hooks are read by what they carry. A weight that another module than its own
reads is not brought then, and no hook tells; something small to run does, and the weight is named before `generate`:

    audit_placement(model, trial=lambda: model(input_ids)).raise_if_wrong()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from conformance.reference.bringing import (
    brought_from,
    hooks_of,
    is_replaced,
    may_be_brought,
    not_brought,
    runs_elsewhere,
)
from conformance.reference.placement_report import PlacementError, PlacementReport
from conformance.reference.planner import DevicePlan, DoesNotFit, plan_device_map
from conformance.reference.tying import address, named_tensors, tied_groups
from conformance.simulation.meta_reads import MetaReads, plain_tensors
from conformance.snapshots import same

__all__ = ["DevicePlan", "DoesNotFit", "PlacementError", "PlacementReport", "audit_placement", "plan_device_map"]


def audit_placement(model: nn.Module, trial: Callable[[], Any] | None = None) -> PlacementReport:
    """What keeps a placed model from running; reads offloaded weights. Modules around the model may be its wrappers.

    trial: something small that runs the model, as one forward: what it reads on `meta` is named, too. Without one,
    nothing is run, and a weight on `meta` that a hook of the caller's own (`register_forward_pre_hook`) may bring is
    unknown, as is whether a tensor there is read that a module keeps as a plain attribute, and a declared tie that
    names nothing, where a head was replaced. An exception of the trial's own, where
    it has read nothing on `meta`, passes through.
    """
    tensors = named_tensors(model)
    replaced = {name for name in tensors if is_replaced(model, name)}
    asked = [name for name, tensor in tensors.items() if tensor.is_meta or name in replaced]
    missing = {name: why for name in asked if (why := not_brought(model, name))}
    maybe = {name for name in missing if may_be_brought(model, name)}
    stranded = {name: why for name, why in missing.items() if name not in maybe}
    unknown = [f"whether {name}, which is on meta, is brought by a hook that is not accelerate's" for name in maybe]
    bare = [name for name, tensor in plain_tensors(model) if tensor.is_meta]
    unknown += [f"whether {name}, which is on meta and neither parameter nor buffer, is read" for name in bare]
    if trial is not None and not stranded:
        known = dict.fromkeys(bare, "it is neither parameter nor buffer, which is all that hooks bring") | missing
        stranded, unknown = {name: known.get(name, why) for name, why in _read_in_vain(model, trial).items()}, []
    held = {name: tensor for name, tensor in tensors.items() if name not in asked}
    untold: list[str] = []
    split = {
        group: where
        for group in tied_groups(model, untold)
        if (where := _split(model, group, tensors, missing, replaced)) is not None
    }
    unknown += [f"what is tied: {why}" for why in untold]
    maps = dispatched(model)
    on_meta = any(tensor.is_meta for tensor in tensors.values())
    first = next(model.parameters(), None)  # which `model.device` is taken from
    return PlacementReport(
        stranded,
        _elsewhere(model, held),
        split,
        tuple(name for prefix, inner in maps.items() for name in _unmapped(prefix, inner)),
        not maps and on_meta and (bool(stranded) or len(_run_on(model)) > 1),
        input_device(model),
        first is not None and first.is_meta,
        tuple(sorted(unknown)),
    )


def dispatched(model: nn.Module) -> dict[str, nn.Module]:
    """Name → module, of those that have a device map of their own: the model, or what a wrapper has inside it."""
    found: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        inside = any(outer == "" or name.startswith(f"{outer}.") for outer in found)
        if not inside and vars(module).get("hf_device_map") is not None:
            found[name] = module
    return found


def _elsewhere(model: nn.Module, held: Mapping[str, torch.Tensor]) -> dict[str, str]:
    found = ((name, tensor, runs_elsewhere(model, name, tensor)) for name, tensor in held.items())
    return {name: f"{tensor.device} and its module runs on {where}" for name, tensor, where in found if where}


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
    embeddings = _embeddings(model)
    for module in (*(embeddings.modules() if embeddings is not None else ()), model):
        for hook in hooks_of(module):
            if getattr(hook, "execution_device", None) is not None:
                return torch.device(hook.execution_device)
    first = next((embeddings or model).parameters(), None)
    return torch.device("cpu") if first is None or first.is_meta else first.device


def _embeddings(model: nn.Module) -> Any:
    """The input embeddings of a model, or of the first one inside a wrapper; None of one that names none."""
    named = (getattr(module, "get_input_embeddings", None) for module in model.modules())
    get = next((method for method in named if method is not None), None)
    try:
        return get() if get is not None else None
    except NotImplementedError:  # a model of several embeddings
        return None


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
    if len({address(members[name]) for name in kept}) > 1:
        unmade = [name for name in kept if is_lazy(members[name])]
        return f"{', '.join(unmade)} is not made yet" if unmade else f"each has its own storage on {places.pop()}"
    values = [value for name in offloaded if (value := brought_from(model, name)) is not None and not value.is_meta]
    if any(not same(value.cpu(), values[0].cpu()) for value in values[1:]):
        return "their offloaded copies hold different values"
    return None


def _unmapped(prefix: str, model: nn.Module) -> Iterator[str]:
    """The modules with weights of their own that no entry of the map covers; constants that are not saved are none."""
    device_map: Mapping[str, Any] = vars(model)["hf_device_map"]
    found = {
        name.rpartition(".")[0]
        for name in model.state_dict()
        if not any(entry in ("", name) or name.startswith(f"{entry}.") for entry in device_map)
    }
    yield from sorted(f"{prefix}.{name}".strip(".") for name in found)
