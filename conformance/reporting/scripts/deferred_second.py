# ruff: noqa: INP001
"""A second call on the cache that is left by stopping one step late, against one on that of stopping at once."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.calling import calling
from conformance.reporting.scripts.following import following
from conformance.reporting.scripts.frame import SECOND, SETTINGS, make_model
from conformance.reporting.scripts.late import deferred
from conformance.reporting.scripts.said import said
from conformance.reporting.scripts.which import which

ROWS = "all"
WHOLE_OUTCOME = True
UNSEEN = ("cache", "rng", "states", "attentions", "hidden_states", "scores")


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the second call returns after stopping at once, and after stopping one step late."""
    outs = []
    for how in (nullcontext, deferred):
        model = make_model()
        keywords, out = calling(model, how)
        keywords = following(getattr(out, "sequences", out)) | which(keywords, out)
        outs.append(said(model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | SECOND))))
    return outs[0], outs[1]
