# ruff: noqa: INP001
"""A custom stop condition of the caller's, or none."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import STOPPING


def stops() -> dict[str, Any]:
    """The keyword of `generate` for it."""
    return STOPPING
