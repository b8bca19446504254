# ruff: noqa: INP001
"""A prompt that reaches a call as the output of the model's encoder."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import INPUTS


def given(model: Any) -> dict[str, Any]:
    """The keywords of `generate`."""
    rest = dict(INPUTS)
    with torch.no_grad():
        ids, mask = rest.pop("input_ids"), rest["attention_mask"]
        outputs = model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True)
    return {**rest, "encoder_outputs": outputs}
