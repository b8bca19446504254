# ruff: noqa: INP001
"""Whether a model can be placed at all."""

from __future__ import annotations

from conformance.reporting.scripts.placing import base_model, placed

ROWS = "all"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """That it is placed, or the exception that placing it raises."""
    placed(base_model())
    return {"placing": "works"}, {"placing": "works"}
