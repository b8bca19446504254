# ruff: noqa: INP001
"""Everything inside nested objects, as `conformance.snapshots` copies it, and a bitwise comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from conformance.reporting.scripts.frame import fault


def leaves(value: Any, path: str) -> dict[str, Any]:
    """Every tensor (copied) and every plain value inside, by dotted path."""
    if torch.is_tensor(value) or value is None or isinstance(value, (bool, int, float, str, torch.dtype)):
        return {path: value.detach().clone() if torch.is_tensor(value) else value}
    if isinstance(value, (list, tuple, set, frozenset)):
        value = dict(enumerate(value))
    elif not isinstance(value, Mapping):
        value = {} if callable(value) else getattr(value, "__dict__", {})
    inside = value.items() if path.count(".") < 12 else ()
    return {k: v for key, item in inside for k, v in leaves(item, f"{path}.{key}").items()}


def equal(what: str, expected: dict[str, Any], got: dict[str, Any]) -> None:
    """Report the first value that is not bitwise the same."""
    for path in sorted({*expected, *got}):
        e, g = expected.get(path, "absent"), got.get(path, "absent")
        tensors = torch.is_tensor(e) and torch.is_tensor(g)
        if not (e.shape == g.shape and torch.allclose(g, e, 0, 0, equal_nan=True) if tensors else e is g or e == g):
            fault(f"{what}: {path} = {e}", g)
