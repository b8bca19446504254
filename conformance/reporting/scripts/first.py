# ruff: noqa: INP001
"""How often preparation is told of the first iteration."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.frame import CHANGES, FIRSTS, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops
from conformance.reporting.scripts.told_first import told_first

ROWS = "running"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """What each model has to be told, and is."""
    model = make_model()
    keywords = arriving(model) | helped(model) | stops()
    told = told_first(model)
    again = told_first(keywords["assistant_model"]) if "assistant_model" in keywords else []
    torch.manual_seed(SEED)
    model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    right = 1 <= sum(told) <= FIRSTS and not any(told[sum(told) :])
    expected = {"main": f"1 to {FIRSTS} first iterations, before all else", "assistant": "none after its first call"}
    got = {"main": expected["main"] if right else str(told)}
    return expected, {**got, "assistant": str(again) if any(again[1:]) else expected["assistant"]}
