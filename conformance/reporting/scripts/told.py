# ruff: noqa: INP001
"""Settings that reach a call as a config."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CHANGES, SETTINGS


def told(_: Any) -> dict[str, Any]:
    """The keyword of `generate`."""
    return {"generation_config": GenerationConfig(**SETTINGS | CHANGES)}
