# ruff: noqa: INP001
"""Drafts that no model makes, or none."""

from __future__ import annotations

from typing import Any


def helped(_: Any) -> dict[str, Any]:
    """No keyword of `generate`."""
    return {}
