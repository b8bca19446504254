# ruff: noqa: INP001
"""Decoding that starts with special tokens, told as ids and passed as inputs."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import (
    BEFORE,
    BY_KEYWORD,
    PASSED,
    PLAINLY,
    SETTINGS,
    STARTS,
    make_model,
)

ROWS = "none"


def decoded(ids: dict[str, Any], inputs: dict[str, Any], by_keyword: bool) -> Any:
    """The tokens."""
    model, config = make_model(), GenerationConfig(**{**SETTINGS, "do_sample": False, "num_return_sequences": 1})
    model.generation_config.bos_token_id = model.generation_config.decoder_start_token_id = None
    for name, value in {**PLAINLY, **({} if by_keyword else ids)}.items():
        setattr(config, name, value)
    told = {name: value for name, value in ids.items() if by_keyword and value is not None}
    return model.generate(**BEFORE, **inputs, generation_config=config, **told).sequences.tolist()


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The tokens both ways; without any token to start with, an error that names one."""
    if PASSED:
        first = {"decoder_start_token_id": next(iter(PASSED.values()))[0, 0].item()}
        expected = {"tokens": str(decoded(first, PASSED, False))}
        got = {"tokens": str(decoded(STARTS, {}, BY_KEYWORD))}
    else:
        expected, got = {"call": "refused"}, {"call": "tokens"}
        try:
            decoded(STARTS, {}, BY_KEYWORD)
        except Exception as error:  # noqa: BLE001
            got["call"] = "refused" if "bos_token_id" in str(error) else f"{type(error).__name__}: {error}"[:200]
    return expected, got
