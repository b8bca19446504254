# ruff: noqa: INP001
"""What a row generated."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import SETTINGS


def new_tokens(out: Any, row: int) -> list[int]:
    """The tokens that a row generated up to its first end token, without the padding that follows."""
    tokens: list[int] = out.sequences[row, -len(out.logits) :].tolist()
    ends = [step for step, token in enumerate(tokens, 1) if token in SETTINGS.get("eos_token_id", ())]
    return tokens[: ends[0]] if ends else tokens
