# ruff: noqa: INP001
"""Whether stopping is deferred where it must not be."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.late import Event, deferred

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """How stopping has to be decided, and how it is."""
    model = make_model()
    keywords = given(model)
    made: list[Event] = []

    def event(*_: Any, **__: Any) -> Event:
        made.append(Event())
        return made[-1]

    torch.manual_seed(SEED)
    with deferred(), patch.object(torch, "Event", event):
        model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    return {"stopping": "at once"}, {"stopping": "deferred" if made else "at once"}
