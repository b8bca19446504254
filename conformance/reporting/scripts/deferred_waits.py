# ruff: noqa: INP001
"""How often the host waits for the step that it has just issued, where stopping is deferred."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.caller import given
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.late import deferred

ROWS = "all"
UNSEEN = ("values read by the host",)


def texts() -> tuple[dict[str, int], dict[str, int]]:
    """Forwards that may begin after such a wait, and those that do."""
    seen = {"forwards": 0, "waited": 0, "waits": 0}

    class Event:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.at = -1

        def record(self) -> None:
            self.at = seen["forwards"]

        def synchronize(self) -> None:
            seen["waited"] = max(seen["waited"], int(self.at == seen["forwards"]))

    def begins(*_: Any) -> None:
        seen.update(forwards=seen["forwards"] + 1, waits=seen["waits"] + seen["waited"], waited=0)

    model = make_model()
    keywords = given(model)
    model.register_forward_pre_hook(begins)
    torch.manual_seed(SEED)
    with deferred(), patch.object(torch, "Event", Event):
        model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    return {"waits for the step just issued": 0}, {"waits for the step just issued": seen["waits"]}
