# ruff: noqa: INP001
"""What is said where weights were left on `meta` with nothing that brings them."""

from __future__ import annotations

import re

import torch

from conformance.reporting.scripts.answering import answer
from conformance.reporting.scripts.frame import LOST
from conformance.reporting.scripts.placing import base_model

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """An error that names one of them, or the module of one."""
    base, model, said = base_model(), base_model(), "no error"
    for name in LOST:
        path, _, last = name.rpartition(".")
        weight = torch.empty_like(base.get_parameter(name), device="meta")
        setattr(model.get_submodule(path), last, torch.nn.Parameter(weight, requires_grad=False))
    try:
        answer(model, base)
    except Exception as error:  # noqa: BLE001 - what it says is looked at
        said = f"{type(error).__name__}: {error}"
    holders = {name.rpartition(".")[0] for name in LOST}
    named = {*LOST, *[name for name in holders if "." in name or "_" in name]}
    told = named & {word.strip(".:") for word in re.findall(r"[\w.:]+", said)}
    return {"error": "names a weight"}, {"error": "names a weight" if told else said[:200]}
