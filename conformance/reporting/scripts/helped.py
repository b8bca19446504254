# ruff: noqa: INP001
"""An assistant that is the model itself."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import DRAFTING, make_model


def helped(_: Any) -> dict[str, Any]:
    """The keyword of `generate` for the assistant."""
    model = make_model()
    vars(model.generation_config).update(DRAFTING)
    return {"assistant_model": model}
