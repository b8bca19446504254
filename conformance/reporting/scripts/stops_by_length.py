# ruff: noqa: INP001
"""A limit of the caller's own that is more than the settings say, and a custom stop condition or none."""

from __future__ import annotations

from typing import Any

from transformers import MaxLengthCriteria

from conformance.reporting.scripts.frame import LONGEST, STOPPING


def stops() -> dict[str, Any]:
    """The keyword of `generate` for them."""
    limit = MaxLengthCriteria(max_length=LONGEST)
    return {"stopping_criteria": [*STOPPING.get("stopping_criteria", []), limit]}
