# ruff: noqa: INP001
"""What a placed model says."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import CALL, INPUTS, SETTINGS  # noqa: F401 - the call uses the others


def answer(model: Any, base: Any) -> dict[str, Any]:
    """What a model says; `base` gives embeddings and an assistant."""
    torch.manual_seed(0)
    out = CALL(model, base)
    logits = [step.tolist() for step in out.logits] if hasattr(out, "logits") and out.logits else []
    return {"sequences": getattr(out, "sequences", out).tolist(), "logits": logits}
