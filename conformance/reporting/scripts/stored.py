# ruff: noqa: INP001
"""An unplaced model saved as its own method does."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import SHARDS


def store(model: Any, folder: str) -> None:
    """In one file, or in files of so many bytes."""
    model.save_pretrained(folder, **SHARDS)
