"""Tensors of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conformance import upstream


def text_inputs(rows: Sequence[Sequence[int]], filler: int, right: bool) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask`, shape (rows, longest row), dtype long; padded on the left, or on the right."""
    width = max(len(row) for row in rows)
    ids = [_padded(row, width, filler, right) for row in rows]
    mask = [_padded([1] * len(row), width, 0, right) for row in rows]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def _padded(row: Sequence[int], width: int, filler: int, right: bool) -> list[int]:
    padding = [filler] * (width - len(row))
    return [*row, *padding] if right else [*padding, *row]


def decoder_inputs(model_class: type, count: int, token: int) -> dict[str, torch.Tensor]:
    """An encoder-decoder model's decoder's first token and, where its forward takes one, its mask; shape (count, 1)."""
    start = torch.full((count, 1), token)
    taken = upstream.forward_parameters(model_class)
    mask = {"decoder_attention_mask": torch.ones_like(start)} if "decoder_attention_mask" in taken else {}
    return {"decoder_input_ids": start, **mask}
