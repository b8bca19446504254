# ruff: noqa: INP001
"""The weights that a model runs with."""

from __future__ import annotations

from typing import Any


def running(model: Any) -> dict[str, Any]:
    """By name: a weight that is there, or what the hook on its module puts in its place."""
    found = {}
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        path, _, last = name.rpartition(".")
        hook = getattr(model.get_submodule(path), "_hf_hook", None)
        for one in getattr(hook, "hooks", [hook]):
            if getattr(one, "offload", False) and (weight.is_meta or last in model.get_submodule(path)._parameters):
                found[name] = one.weights_map[last].to(weight.dtype)
        if not weight.is_meta:
            found.setdefault(name, weight)
    return found
