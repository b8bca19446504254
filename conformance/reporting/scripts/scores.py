# ruff: noqa: INP001
"""How a row of an outcome is compared when its logits are right: scores, tokens, length and padding."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.close import close
from conformance.reporting.scripts.frame import SETTINGS, fault, make_model
from conformance.reporting.scripts.tokens import new_tokens


def agree(out: Any, row: int, expected: list[torch.Tensor], inputs: dict[str, Any]) -> None:
    """Scores are the processed logits, tokens have the highest score, and a row ends where it should."""
    caught: list[Any] = []

    def catch(model: Any, input_ids: torch.Tensor, logits_processor: Any, **_: Any) -> torch.Tensor:
        caught.append(logits_processor)
        return input_ids

    make_model().generate(**inputs, generation_config=GenerationConfig(**SETTINGS), custom_generate=catch)
    tokens, start = new_tokens(out, row), out.sequences.shape[1] - len(out.logits)
    ids = out.sequences[row : row + 1]
    scores = [caught[0](ids[:, : start + step], e[None].clone())[0] for step, e in enumerate(expected)]
    close("scores", scores, [step[row] for step in out.scores[: len(scores)]])
    if not SETTINGS.get("do_sample"):
        close("highest score", [s.max() for s in scores], [s[token] for s, token in zip(scores, tokens)])
    rest, limit = ids[0, start + len(tokens) :].tolist(), SETTINGS["max_new_tokens"]
    if any(token != SETTINGS["pad_token_id"] for token in rest):
        fault("only padding after the end", rest)
    if max(len(new_tokens(out, other)) for other in range(len(out.sequences))) != len(out.logits) or not (
        len(tokens) == limit or tokens[-1] in SETTINGS.get("eos_token_id", ())
    ):
        fault(f"{limit} tokens or an end token", out.sequences[:, start:].tolist())
