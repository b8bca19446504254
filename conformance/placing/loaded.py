"""The weights that a model runs with, and those that it has after loading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from conformance import upstream
from conformance.reference.bringing import brought_from, is_replaced
from conformance.reference.tying import named_tensors, tied_groups
from conformance.snapshots import same

Weights = dict[str, torch.Tensor]


def running_weights(model: Any) -> Weights:
    """By name, what is there when a module runs, on the CPU: a tensor that is saved, or what a hook puts in its place.

    A hook gives it the dtype of what it replaces. What none brings is left out: that is a matter of stranded weights.
    Buffers that are not saved are left out, too: a forward may change them (`unsaved_buffers`).
    """
    found: Weights = {}
    saved = model.state_dict()
    for name, tensor in named_tensors(model).items():
        if name not in saved:
            continue
        value: torch.Tensor | None = tensor
        if tensor.is_meta or is_replaced(model, name):
            value = brought_from(model, name)
        if value is not None and not value.is_meta:
            found[name] = value.detach().cpu().to(tensor.dtype)
    return found


def unsaved_buffers(model: Any) -> Weights:
    """By name, the buffers that are not saved, as they are now, on the CPU; a forward may change them."""
    saved = model.state_dict()
    named = model.named_buffers(remove_duplicate=False)
    return {name: one.detach().cpu().clone() for name, one in named if name not in saved and not one.is_meta}


def not_as_saved(saved: Any, loaded: Any) -> str | None:
    """The first weight that is another after loading, or None. Those that a class never saves are left out."""
    left_out, after = upstream.never_saved(saved), loaded.state_dict()
    for name, tensor in saved.state_dict().items():
        if name in left_out:
            continue
        if name not in after:
            return f"{name} is not there"
        if not same(tensor.to(after[name].dtype), after[name]):
            return f"{name} has other values"
    return None


def other_dtypes(unplaced: Any, loaded: Any) -> dict[str, torch.dtype]:
    """The tensors to which loading gives another dtype than they had, with that.

    It is not always the one that was asked for: a class names what stays in float32, and tables of positions do.
    """
    before, after = named_tensors(unplaced), named_tensors(loaded)
    return {name: after[name].dtype for name in before if name in after and after[name].dtype != before[name].dtype}


def in_dtypes(model: Any, dtypes: Mapping[str, torch.dtype]) -> Any:
    """The same model with these tensors in these dtypes; what is one tensor stays one."""
    tensors = named_tensors(model)
    for name, dtype in dtypes.items():
        tensors[name].data = tensors[name].data.to(dtype)
    return model


def change_one_weight(model: Any) -> None:
    """Change a weight that is there, is its own and is saved, as training does; if there is one."""
    kept = {name for group in tied_groups(model) for name in group} | upstream.never_saved(model)
    for name, weight in model.named_parameters():
        if not (weight.is_meta or is_replaced(model, name) or name in kept):
            with torch.no_grad():
                weight.mul_(0.5)
            return
