# ruff: noqa: INP001
"""The modules with weights that the map of a placed model leaves out."""

from __future__ import annotations

from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """None is expected; a model on one device needs no map."""
    model = placed(base_model())
    told, names = getattr(model, "hf_device_map", None), list(model.state_dict())
    if told is None:
        told = {} if len({weight.device for weight in model.parameters()}) > 1 else {"": "cpu"}
    left = [name for name in names if not any(entry in ("", name) or name.startswith(f"{entry}.") for entry in told)]
    return dict.fromkeys(left or ["map"], "told"), dict.fromkeys(left, "left out") or {"map": "told"}
