# ruff: noqa: INP001
"""What a model's preparations are told of the first iteration, as `conformance.drafting.preparations` sees it."""

from __future__ import annotations

import functools
import traceback
from typing import Any


def told_first(model: Any) -> list[bool]:
    """From here on, of each preparation in order; without those of a model that drafts for itself."""
    prepared, told = model.prepare_inputs_for_generation, []

    @functools.wraps(prepared)
    def prepare(*args: Any, **kwargs: Any) -> Any:
        if sum(frame.name == "generate" for frame in traceback.extract_stack()) < 2:
            told.append(bool(kwargs.get("is_first_iteration")))
        return prepared(*args, **kwargs)

    model.prepare_inputs_for_generation = prepare
    return told
