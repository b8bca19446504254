# ruff: noqa: INP001
"""The weights of a placed model that are on `meta` with no hook that could bring them."""

from __future__ import annotations

from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"
UNSEEN = ("copies of hooks",)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """None is expected."""
    model = placed(base_model())
    owners = {name: model.get_submodule(name.rpartition(".")[0]) for name, p in model.named_parameters() if p.is_meta}
    lost = {name: "on meta, no hook" for name, owner in owners.items() if not hasattr(owner, "_hf_hook")}
    return dict.fromkeys(lost or ["weights"], "there"), lost or {"weights": "there"}
