# ruff: noqa: INP001
"""The tied groups of a model, once it is placed."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"


def tied(model: Any) -> list[list[str]]:
    """The names of each weight that has several."""
    names: dict[int, list[str]] = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    return [group for group in names.values() if len(group) > 1]


def place(model: Any, name: str) -> str:
    """Where a weight is: offloaded, or at an address of a device."""
    weight, hook = model.get_parameter(name), getattr(model.get_submodule(name.rpartition(".")[0]), "_hf_hook", None)
    offloaded = weight.is_meta or any(getattr(one, "offload", False) for one in getattr(hook, "hooks", [hook]))
    return "offloaded" if offloaded else f"{weight.device} {weight.data_ptr()}"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Each of them is one, or apart."""
    base = base_model()
    model = placed(base)
    apart = {", ".join(group): "apart" for group in tied(base) if len({place(model, name) for name in group}) > 1}
    return dict.fromkeys(apart or ["groups"], "one"), apart or {"groups": "one"}
