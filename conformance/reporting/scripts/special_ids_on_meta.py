# ruff: noqa: INP001
"""Special tokens prepared for the device `meta`."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import EXPECTED_IDS, EXPLICIT_DEVICE, HAS_MASK, IDS, make_model
from conformance.reporting.scripts.prepare import prepare

UNSEEN = ("warnings", "reads")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What each token has to become, and what it becomes; or that they have to be refused."""
    model, config = make_model().to("meta"), GenerationConfig()
    for name, value in IDS.items():
        setattr(config, name, value)
    got = prepare(model, config, HAS_MASK, "meta" if EXPLICIT_DEVICE else None, False)
    shapes = {name: None if ids is None else torch.tensor(ids).shape for name, ids in EXPECTED_IDS.items()}
    return {name: f"{shape} on meta" for name, shape in shapes.items()}, got
