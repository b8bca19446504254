# ruff: noqa: INP001
"""A placed model, one weight of it changed, saved where it was loaded from."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import torch

from conformance.reporting.scripts.answering import answer
from conformance.reporting.scripts.brought import running
from conformance.reporting.scripts.frame import LOAD, OVER, PLACE
from conformance.reporting.scripts.placing import base_model
from conformance.reporting.scripts.stored import store

ROWS = "all"


def change(model: Any, base: Any) -> None:
    """Halve a weight that is there and has one name."""
    names = [name for name, _ in base.named_parameters(remove_duplicate=False)]
    alone = [n for n in names if sum(base.get_parameter(m) is base.get_parameter(n) for m in names) == 1]
    owners = {name: model.get_submodule(name.rpartition(".")[0]) for name in alone}
    there = [n for n in alone if not getattr(getattr(owners[n], "_hf_hook", None), "offload", False)]
    for name in [n for n in there if not model.get_parameter(n).is_meta][:1]:
        model.get_parameter(name).data.mul_(0.5)


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """The weights that load then, and what the model says, after it was saved and before."""
    base, folder = base_model(), tempfile.mkdtemp()
    store(base, folder)
    model = PLACE(copy.deepcopy(base), folder, tempfile.mkdtemp())
    model.generation_config = base.generation_config
    change(model, base)
    weights, said = running(model), answer(model, base)
    model.save_pretrained(folder, **OVER)
    again = running(LOAD(base, folder))
    wrong = {n: "differs" for n, w in weights.items() if n in again and not torch.equal(w, again[n])}
    got = wrong or answer(model, base)
    return (dict.fromkeys(wrong, "as saved") if wrong else said), got
