# ruff: noqa: INP001
"""A first call for which an assistant drafts."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import BEGUN, make_model


def begun() -> dict[str, Any]:
    """What the first call is given besides ids: the model itself as its assistant."""
    model = make_model()
    vars(model.generation_config).update(BEGUN)
    return {"assistant_model": model}
