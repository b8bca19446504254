"""What a call leaves in the model: attributes, weights and buffers, flags, configs, hooks, and methods put on it."""

from __future__ import annotations

from typing import Any

import torch

from conformance.snapshots import Flat, changes, kept_on_purpose, module_state, snapshot


def model_state(model: Any) -> Flat:
    """All of it as flat leaves; of a hook or a method no more than what it is called: functions cannot be compared."""
    return without_hooks(model) | _hooks(model)


def without_hooks(model: Any) -> Flat:
    """The same without hooks: some that record states are installed at their first use, and stay."""
    return module_state(model) | configs_and_methods(model)


def configs_and_methods(model: Any) -> Flat:
    """Both configs of a model, and the methods that were put on its modules."""
    configs = {name: vars(getattr(model, name)) for name in ("config", "generation_config")}
    return snapshot(configs, "model") | _methods(model)


def _hooks(model: torch.nn.Module) -> Flat:
    """Module and list of hooks → the names of those that are registered."""
    return {
        f"model.{name}.{kind}" if name else f"model.{kind}": ", ".join(sorted(map(_name, hooks.values())))
        for name, module in model.named_modules()
        for kind, hooks in vars(module).items()
        if kind.endswith("_hooks") and hooks
    }


def _methods(model: torch.nn.Module) -> Flat:
    """Module and attribute → what the function is called that stands there, in the place of a method of the class."""
    return {
        f"model.{name}.{attribute}" if name else f"model.{attribute}": _name(value)
        for name, module in model.named_modules()
        for attribute, value in vars(module).items()
        if callable(value) and not isinstance(value, type | torch.nn.Module)
    }


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


def traces(after: Flat, before: Flat, owner: str) -> dict[str, str]:
    """What a model of type `owner` holds that differs from what it held before, or from another's: path → how.

    Without what a model keeps on purpose.
    """
    found = changes(before, after)
    return {path: how for path, how in found.items() if kept_on_purpose(owner, path) is None}


def states(held: Flat) -> set[str]:
    """The paths of tensors and numbers that are no weights and no buffers: what forwards may write, and go on from."""
    kept = {path for path, leaf in held.items() if isinstance(leaf, torch.Tensor) or type(leaf) in (int, float)}
    return {path for path in kept if not {"_parameters", "_buffers"} & {*path.split(".")}}
