"""What a call leaves in the model: attributes, weights and buffers, flags, configs, and hooks."""

from __future__ import annotations

from typing import Any

import torch

from conformance.snapshots import Flat, changes, kept_on_purpose, module_state, snapshot

NOT_GONE_ON_FROM = "states: those on the model's modules are of the undone step, and nothing goes on from them"


def model_state(model: Any) -> Flat:
    """All of it as flat leaves; of a hook no more than what it is called: a function cannot be compared."""
    configs = {name: vars(getattr(model, name)) for name in ("config", "generation_config")}
    return module_state(model) | snapshot(configs, "model") | _hooks(model)


def _hooks(model: torch.nn.Module) -> Flat:
    """Module and list of hooks → the names of those that are registered."""
    return {
        f"model.{name}.{kind}" if name else f"model.{kind}": ", ".join(sorted(map(_name, hooks.values())))
        for name, module in model.named_modules()
        for kind, hooks in vars(module).items()
        if kind.endswith("_hooks") and hooks
    }


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


def traces(late: Flat, at_once: Flat, owner: str) -> dict[str, str]:
    """What differs in a model of type `owner` after stopping late from after stopping at once, path → how."""
    found = changes(at_once, late)
    return {path: how for path, how in found.items() if kept_on_purpose(owner, path) is None}


def states(held: Flat) -> set[str]:
    """The paths of tensors that are no weights and no buffers: what may be carried from one forward to the next."""
    kept = {path for path, leaf in held.items() if isinstance(leaf, torch.Tensor)}
    return {path for path in kept if not {"_parameters", "_buffers"} & {*path.split(".")}}
