# ruff: noqa: INP001
"""The weights of a placed model that will not be there when their module runs."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"


def stranded(model: Any) -> dict[str, str]:
    """Weight → why no hook can bring it."""
    found: dict[str, str] = {}
    hook: Any
    for name, weight in model.named_parameters(remove_duplicate=False):
        module, _, own = name.rpartition(".")
        on_module = getattr(model.get_submodule(module), "_hf_hook", None)
        for hook in getattr(on_module, "hooks", (on_module,)):
            if not getattr(hook, "offload", False):
                found |= {name: "on meta, and no hook brings it"} if weight.is_meta else {}
                continue
            try:
                hook.weights_map[own]
            except KeyError as error:
                found[name] = f"its hook has no copy of it: {error!r}"
            else:
                found.pop(name, None)
    return found


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """None is expected."""
    found = stranded(placed(base_model()))
    return dict.fromkeys(found or ["weights"], "there"), found or {"weights": "there"}
