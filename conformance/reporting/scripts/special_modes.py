# ruff: noqa: INP001
"""Decoding with end and pad tokens in a caller's form, and as plain numbers."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import BY_KEYWORD, EXTRAS, INPUTS, PLAINLY, ROW, SPOKEN, make_model
from conformance.reporting.scripts.speaking import speaking

ROWS = "running"


def decoded(ids: dict[str, Any], by_keyword: bool) -> list[int]:
    """The new tokens."""
    model, (config, extras) = make_model(), speaking(ids, by_keyword)
    model.generation_config.pad_token_id = None
    start = INPUTS.get("decoder_input_ids", INPUTS["input_ids"]).shape[1]
    tokens: list[int] = model.generate(**INPUTS, generation_config=config, **extras).sequences[ROW, start:].tolist()
    return tokens


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Plain numbers first; then the form, and padding after the end."""
    plain, got = decoded(PLAINLY, False), decoded(SPOKEN, BY_KEYWORD)
    pad, ends = PLAINLY["pad_token_id"], PLAINLY["eos_token_id"]
    end = next((step for step, token in enumerate(got) if token in ends), len(got))
    filled = [*got[: end + 1], *(pad for _ in got[end + 1 :])] if "num_beams" in EXTRAS else got
    return {"tokens": str(plain), "filled up": str(filled)}, {"tokens": str(got), "filled up": str(got)}
