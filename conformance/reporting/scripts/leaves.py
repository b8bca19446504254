# ruff: noqa: INP001
"""Everything inside nested objects, as `conformance.snapshots` walks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def leaves(value: Any, path: str, depth: int = 9) -> dict[str, str]:
    """Every tensor and plain value inside, as text, by dotted path."""
    if torch.is_tensor(value):
        return {path: f"{value.dtype} {value.tolist()}"}
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype)):
        return {path: repr(value)}
    if isinstance(value, (list, tuple, set, frozenset)):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        value = {} if callable(value) else getattr(value, "__dict__", {})
    inside = value.items() if depth else ()
    return {k: v for key, item in inside for k, v in leaves(item, f"{path}.{key}", depth - 1).items()}
