# ruff: noqa: INP001
"""Settings that are the model's own, of which the caller tells nothing."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import CHANGES, SETTINGS


def told(model: Any) -> dict[str, Any]:
    """No keyword of `generate`; the generation config of the model has them."""
    model.generation_config.update(**SETTINGS | CHANGES)
    return {}
