# ruff: noqa: INP001
"""Settings that reach a call as keywords."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import CHANGES, SETTINGS


def told(_: Any) -> dict[str, Any]:
    """The keywords of `generate`."""
    return {**SETTINGS, **CHANGES}
