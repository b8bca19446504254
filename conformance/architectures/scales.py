"""How large the random weights of a type are: the standard deviations that its draws take, the best one first.

Too small, and no fault reaches the logits; too large, and attention saturates: over all types 3 of 100 lost entries
were not seen at 0.6, 1.5 at 0.5, and less than 1 at those below. `scales.json` holds, for types whose best scale is not
the general one, what the sensitivity table measured, and in words why.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

SCALES = (0.3, 0.2, 0.4, 0.15, 0.1)


@cache
def _measured() -> dict[str, list[float]]:
    text = resources.files("conformance.architectures").joinpath("scales.json").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    return {name: [float(scale) for scale in entry["scales"]] for name, entry in entries.items()}


def scales_of(name: str) -> tuple[float, ...]:
    """The scales for an architecture, to which a draw shrinks in this order."""
    return tuple(_measured().get(name, SCALES))
