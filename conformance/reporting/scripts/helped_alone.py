# ruff: noqa: INP001
"""Drafts of the model's own first layers."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import DRAFTING


def helped(model: Any) -> dict[str, Any]:
    """No keyword of `generate`: the model's own generation config says how much it drafts."""
    vars(model.generation_config).update(DRAFTING)
    return {}
