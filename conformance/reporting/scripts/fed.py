# ruff: noqa: INP001
"""One forward onto a cache, of a model without an encoder."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import INPUTS, NAME, TAKEN


def fed(model: Any, cache: Any, rows: list[int], past: int, ids: list[list[int]]) -> Any:
    """The outputs for these rows of the prompt, of which `past` tokens were fed; no ids: the prompt."""
    tokens = torch.tensor(ids) if ids else INPUTS["input_ids"][rows]
    length = past + tokens.shape[1]
    mask = torch.nn.functional.pad(INPUTS["attention_mask"][rows], (0, length), value=1)[:, :length]
    given = {"input_ids": tokens, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(0)[:, past:]}
    return model(**{k: v for k, v in given.items() if k in TAKEN}, **{NAME: cache}, use_cache=True)
