# ruff: noqa: INP001
"""Special tokens prepared for the device `cpu`."""

from __future__ import annotations

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import EXPECTED_IDS, EXPLICIT_DEVICE, HAS_MASK, IDS, make_model
from conformance.reporting.scripts.prepare import prepare

UNSEEN = ("warnings", "reads")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What each token has to become, and what it becomes; or that they have to be refused."""
    model, config = make_model().to("cpu"), GenerationConfig()
    for name, value in IDS.items():
        setattr(config, name, value)
    got = prepare(model, config, HAS_MASK, "cpu" if EXPLICIT_DEVICE else None, isinstance(EXPECTED_IDS, str))
    refused = isinstance(EXPECTED_IDS, str)
    told = {"refused": str(got or "yes")} if refused else got
    wanted = {"refused": "yes"} if refused else {name: f"{value} on cpu" for name, value in EXPECTED_IDS.items()}
    return wanted, told
