# ruff: noqa: INP001
"""What reaches a model of the images of a call, as `conformance.drafting.media_use` sees it."""

from __future__ import annotations

from typing import Any

import torch


def uses(model: Any, given: set[int], placeholders: int) -> list[float]:
    """From here on, of each forward: how often it gets the images, told by address or encoded before, and what part."""
    times: list[float] = []

    def look(_: Any, args: Any, kwargs: Any) -> None:
        tensors = [value for value in (*args, *kwargs.values()) if torch.is_tensor(value)]
        encoded = [output.pooler_output for output in (kwargs.get("mm_encoder_outputs") or {}).values()]
        parts = [part for found in encoded for part in (found if isinstance(found, (list, tuple)) else [found])]
        rows = sum(part.numel() // part.shape[-1] for part in parts)
        times.append(any(tensor.data_ptr() in given for tensor in tensors) + rows / placeholders)

    model.register_forward_pre_hook(look, with_kwargs=True)
    return times
