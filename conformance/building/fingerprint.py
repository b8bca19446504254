"""What tells one built model from another: whether a release understood a case as another one did."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from conformance.case import plain
from conformance.weights import tensors


def fingerprint_of(model: Any, config: Any, paths: Iterable[str]) -> str:
    """A digest of parameter names, shapes and the config attributes at these dotted paths as they are in effect."""
    shapes = sorted((name, list(tensor.shape)) for name, tensor in tensors(model))
    effective = {path: _attribute(config, path) for path in sorted(paths)}
    text = json.dumps([shapes, effective], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _attribute(config: Any, path: str) -> Any:
    value: Any = config
    for part in path.split("."):
        try:
            value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
        except Exception:  # noqa: BLE001 - configs with a value per layer raise errors of their own
            return "differs per layer"
    return plain(value)
