# ruff: noqa: INP001
"""A caller that passes no cache."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def given(_: Any) -> dict[str, Any]:
    """What `generate` is given."""
    return INPUTS
