# ruff: noqa: INP001
"""All that a call returns, without the memory of a static cache: beyond its length that is no content."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.leaves import leaves


def shown(out: Any, path: str) -> dict[str, str]:
    """Every leaf of it as text, by dotted path."""
    return {name: text for name, text in leaves(out, path).items() if not name.endswith((".keys", ".values"))}
