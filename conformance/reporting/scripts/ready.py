# ruff: noqa: INP001
"""The model as it is made."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import make_model


def ready() -> Any:
    """A new model."""
    return make_model()
