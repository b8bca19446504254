# ruff: noqa: INP001
"""A second call that goes on from the first, on the same text for the encoder."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def following(sequences: Any) -> dict[str, Any]:
    """What `generate` is given."""
    return {**INPUTS, "decoder_input_ids": sequences}
