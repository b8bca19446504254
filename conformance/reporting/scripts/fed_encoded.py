# ruff: noqa: INP001
"""One forward of a decoder onto a cache, after its encoder."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import INPUTS, NAME, TAKEN


def fed(model: Any, cache: Any, rows: list[int], past: int, ids: list[list[int]]) -> Any:
    """The outputs for these rows of the prompt, of which `past` tokens were decoded; no ids: the first."""
    tokens, seen = torch.tensor(ids) if ids else INPUTS["decoder_input_ids"][rows], INPUTS["attention_mask"][rows]
    encoded = model.get_encoder()(input_ids=INPUTS["input_ids"][rows], attention_mask=seen, return_dict=True)
    mask = torch.ones(len(rows), past + tokens.shape[1], dtype=torch.long)
    given = {"decoder_input_ids": tokens, "attention_mask": seen, "decoder_attention_mask": mask}
    given = {k: v for k, v in given.items() if k in TAKEN}
    return model(**given, **{NAME: cache}, encoder_outputs=encoded, use_cache=True)
