# ruff: noqa: INP001
"""What a call says: the tokens, and the logits where they are returned."""

from __future__ import annotations

from typing import Any


def said(out: Any) -> dict[str, Any]:
    """The sequences, and the logits of each step."""
    logits = {f"logits.{n}": step.tolist() for n, step in enumerate(getattr(out, "logits", None) or ())}
    return {"sequences": getattr(out, "sequences", out).tolist(), **logits}
