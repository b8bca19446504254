# ruff: noqa: INP001
"""The answer of a placed model against that of the same model undispatched."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.answering import answer
from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"


def texts() -> tuple[dict[str, Any], dict[str, Any]]:
    """The sequences and logits of both; on the CPU and the disk alone they are bitwise the same."""
    base = base_model()
    return answer(base, base), answer(placed(base), base)
