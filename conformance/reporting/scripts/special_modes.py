# ruff: noqa: INP001
"""Decoding with end and pad tokens in a caller's form, and as plain numbers."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import (
    BY_KEYWORD,
    DRAFT,
    EXTRAS,
    INPUTS,
    PLAINLY,
    ROW,
    SETTINGS,
    SPOKEN,
    make_model,
)

ROWS = "running"


def decoded(ids: dict[str, Any], by_keyword: bool) -> list[int]:
    """The new tokens."""
    model, config = make_model(), GenerationConfig(**{**SETTINGS, "do_sample": False, "num_return_sequences": 1})
    model.generation_config.pad_token_id = None
    for name, value in ids.items():
        setattr(config, name, None if by_keyword else value)
    extras = dict(EXTRAS)
    if by_keyword:
        extras |= {name: value for name, value in ids.items() if value is not None}
    if DRAFT:
        extras["assistant_model"] = assistant = make_model()
        assistant.generation_config.num_assistant_tokens = DRAFT
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
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
