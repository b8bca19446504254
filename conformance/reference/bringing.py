"""What the hooks on a model's modules bring before a forward: read from what they carry, as accelerate's have it.

`offload`, `weights_map`, `place_submodules`, `offload_buffers`, `execution_device`; nothing is imported from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import _global_forward_pre_hooks
from torch.nn.parameter import is_lazy

RESHAPED = ("Params4bit",)  # parameters that pack what they are given
BRING_NOTHING = ("WeightNorm", "SpectralNorm")  # hooks of torch's own that compute a weight from others


def is_replaced(model: nn.Module, name: str) -> bool:
    """Whether the hook on a tensor's own module puts a copy of its own in its place before each forward."""
    module_name, _, tensor_name = name.rpartition(".")
    owner = model.get_submodule(module_name)
    return tensor_name in owner._parameters and any(getattr(hook, "offload", False) for hook in hooks_of(owner))


def not_brought(model: nn.Module, name: str) -> str:
    """Why no hook brings the tensor of this name before its module runs; empty when one does."""
    module_name, _, tensor_name = name.rpartition(".")
    reason = "no hook on its module brings it"
    for above, path in _upwards(module_name, tensor_name):
        for hook in hooks_of(model.get_submodule(above)):
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
    if value is None or value.is_meta:
        return "its hook's copy is itself on meta"
    return _misshapen(owner._parameters.get(tensor_name, owner._buffers.get(tensor_name)), value)


def _misshapen(tensor: torch.Tensor | None, value: torch.Tensor) -> str:
    """What is wrong with the shape of a copy: none can be put in a tensor's place that has another."""
    if tensor is None or is_lazy(tensor) or type(tensor).__name__ in RESHAPED or value.shape == tensor.shape:
        return ""
    return f"its hook's copy is of shape {tuple(value.shape)}, and it is of {tuple(tensor.shape)}"


def brought_to(model: nn.Module, name: str) -> torch.device | None:
    """The device to which a hook that offloads brings a tensor before its module runs; None where none does."""
    module_name, _, tensor_name = name.rpartition(".")
    for above, _ in _upwards(module_name, tensor_name):
        for hook in hooks_of(model.get_submodule(above)):
            inside = above == module_name or getattr(hook, "place_submodules", False)
            if getattr(hook, "offload", False) and inside and hook.execution_device is not None:
                return torch.device(hook.execution_device)
    return None


def may_be_brought(model: nn.Module, name: str) -> bool:
    """Whether code of the caller's own runs before the module of a tensor does, and may bring it: nobody can tell.

    torch's own hooks (`register_forward_pre_hook`) on the module, on one around it, or on all modules.
    """
    if _global_forward_pre_hooks:
        return True
    above = [model.get_submodule(path) for path, _ in _upwards(name.rpartition(".")[0], "")]
    return any(type(hook).__name__ not in BRING_NOTHING for one in above for hook in one._forward_pre_hooks.values())


def runs_elsewhere(model: nn.Module, name: str, tensor: torch.Tensor) -> torch.device | None:
    """The device on which hooks run the module of a tensor that is held, where the tensor is on another; else None.

    A number on the CPU serves on any device; what is not made yet is nowhere.
    """
    device = run_on(model, name)
    if device is None or is_lazy(tensor) or (tensor.device.type == "cpu" and not tensor.dim()):
        return None
    return None if same_device(tensor.device, device) else device


def run_on(model: nn.Module, name: str) -> torch.device | None:
    """The device on which hooks run the module of a tensor; None where none says.

    The module's own hooks say it, else the nearest one around it that also places what is inside.
    """
    module_name, _, tensor_name = name.rpartition(".")
    for above, _ in _upwards(module_name, tensor_name):
        for hook in reversed(hooks_of(model.get_submodule(above))):
            device = None if hasattr(hook, "prev_module_hook") else getattr(hook, "execution_device", None)
            if device is None or (above != module_name and not getattr(hook, "place_submodules", False)):
                continue  # a hook that knows another one's module brings the whole of its own
            return torch.device(device)
    return None


def same_device(one: torch.device, other: torch.device) -> bool:
    """Whether two names are one device; one without a number stands for any of its kind."""
    return one.type == other.type and (one.index == other.index or None in (one.index, other.index))


def brought_from(model: nn.Module, name: str) -> torch.Tensor | None:
    """The value that a hook would bring for a tensor on `meta`, or None."""
    module_name, _, tensor_name = name.rpartition(".")
    for above, path in _upwards(module_name, tensor_name):
        for hook in hooks_of(model.get_submodule(above)):
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


def hooks_of(module: nn.Module) -> Sequence[Any]:
    """The hooks on a module, those of a sequence of hooks each."""
    hook = getattr(module, "_hf_hook", None)
    return () if hook is None else getattr(hook, "hooks", (hook,))
