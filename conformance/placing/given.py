"""What a subject gives back where it places, loads or plans: told as its fault where it is something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

SHOWN = (type(None), bool, int, float)


def a_model(found: Any, by: str) -> Any:
    """What a method gave, if it is a model. Raises TypeError, which is the subject's."""
    if isinstance(found, nn.Module) and all(hasattr(found, name) for name in ("config", "generation_config")):
        return found
    raise TypeError(f"{by} returned {_told(found)}, and must return a model with its configs")


def a_recipe(found: Any, by: str) -> Any:
    """What a method gave, if it is a recipe with a map. Raises TypeError, which is the subject's."""
    if isinstance(getattr(found, "device_map", None), str | Mapping):
        return found
    raise TypeError(f"{by} returned {_told(found)}, and must return a recipe with a device_map")


def _told(found: Any) -> str:
    """A plain value itself; of anything else its type, for it may raise when it is asked for more."""
    return repr(found) if isinstance(found, SHOWN) else f"a {type(found).__name__}"
