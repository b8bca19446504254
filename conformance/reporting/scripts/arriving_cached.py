# ruff: noqa: INP001
"""A prompt of which earlier calls have left a part in the cache."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.begun import begun
from conformance.reporting.scripts.frame import GIVEN, INPUTS, MASKED, POSITIONED, SETTINGS, TURNS, make_model


def arriving(_: Any) -> dict[str, Any]:
    """What `generate` is given: the cache of calls for which each token was that of the prompt, and ids."""
    ids, mask, left = INPUTS["input_ids"], INPUTS["attention_mask"], begun()
    for begin, end, changes in TURNS:
        given = {"input_ids": ids[:, begin:end], "attention_mask": mask[:, :end], **left}
        given["generation_config"] = GenerationConfig(**SETTINGS | {"eos_token_id": None, "do_sample": False} | changes)
        same = {"prefix_allowed_tokens_fn": lambda row, seen: [int(at(ids[row], begin + len(seen)))]}  # noqa: B023
        out = make_model().generate(**given, **same)
        left = {n: out[n] for n in ("cache", "past_key_values", "cache_params") if out.get(n) is not None}
    told = {"attention_mask": mask} if MASKED else {}
    told |= {"position_ids": (mask.cumsum(-1) - 1).clamp(min=0)[:, GIVEN:]} if POSITIONED else {}
    return {"input_ids": ids[:, GIVEN:], **told, **left}


def at(ids: torch.Tensor, place: int) -> torch.Tensor:
    """The id at a place, or the last: what comes after a whole prompt is no part of it."""
    return ids[min(place, len(ids) - 1)]
