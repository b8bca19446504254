# ruff: noqa: INP001
"""All that a call returns."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.leaves import leaves


def shown(out: Any, path: str) -> dict[str, str]:
    """Every leaf of it as text, by dotted path."""
    return leaves(out, path)
