# ruff: noqa: INP001
"""The drafts of a run, as `conformance.drafting.rounds` tells them."""

from __future__ import annotations

import functools
import traceback
from typing import Any

import torch

from conformance.reporting.scripts.frame import START


def drafts_of(model: Any) -> dict[int, list[int]]:
    """From here on, by the length of the sequence; a forward that comes back to an earlier length verifies none."""
    prepared = model.prepare_inputs_for_generation
    found: dict[int, list[int]] = {}

    @functools.wraps(prepared)
    def prepare(input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        inputs, ids = prepared(input_ids, *args, **kwargs), input_ids[0].tolist()
        names, first = ("decoder_input_ids", "inputs_embeds", "input_ids"), kwargs.get("is_first_iteration")
        fed = next(inputs[name].shape[1] for name in names if inputs.get(name) is not None)
        length = START if first else len(ids) - fed + 1
        outermost = sum(frame.name == "generate" for frame in traceback.extract_stack()) < 2
        if outermost and (first or length > max(found, default=-1)):
            found[length] = ids[length:]
        return inputs

    model.prepare_inputs_for_generation = prepare
    return found
