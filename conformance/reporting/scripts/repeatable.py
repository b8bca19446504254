# ruff: noqa: INP001
"""The same call twice on the same objects, and once on a new model."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.frame import SEED, make_model
from conformance.reporting.scripts.given import given
from conformance.reporting.scripts.leaves import leaves
from conformance.reporting.scripts.told import told

ROWS = "all"
BEYOND = ("quantized", "raises")
WHOLE_OUTCOME = True


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcome of a call, twice, and those of the same call again and of the same call on a new model."""
    first, new, outs = make_model(), make_model(), []
    kept = {**given(first), **told(first)}
    for model, call in ((first, kept), (first, kept), (new, {**given(new), **told(new)})):
        torch.manual_seed(SEED)
        out = model.generate(**call)
        outs.append(leaves({**out, "generator": torch.get_rng_state()}, "output"))
    names = ("second call", "call on a new model")
    expected = {f"{name}: {path}": text for name in names for path, text in outs[0].items()}
    return expected, {f"{n}: {path}": text for n, out in zip(names, outs[1:]) for path, text in out.items()}  # noqa: B905
