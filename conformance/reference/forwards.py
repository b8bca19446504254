"""The inputs of one forward, kept so that it can be run again: with fewer tokens, or with other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance import upstream


@dataclass(frozen=True)
class Forward:
    """One forward: the cache before it, and its inputs without the cache."""

    before: dict[str, Any]
    inputs: dict[str, Any]

    @property
    def count(self) -> int:
        """How many tokens a row it fed."""
        return int(self._ids.shape[1])

    @property
    def _ids(self) -> torch.Tensor:
        ids = self.inputs.get("decoder_input_ids", self.inputs.get("input_ids"))
        assert ids is not None
        return ids


def shortened(a_cache: Any, inputs: Mapping[str, Any], count: int, gone: int) -> dict[str, Any]:
    """The inputs of a forward without its last `gone` tokens of `count + gone`."""
    mask = "decoder_attention_mask" if "decoder_input_ids" in inputs else "attention_mask"
    short = dict(inputs)
    for name in upstream.PER_TOKEN:
        if isinstance(inputs.get(name), torch.Tensor):
            short[name] = inputs[name][..., :count]
    if inputs.get(mask) is not None:
        sizes = kv_sizes(a_cache, count, gone)
        given = inputs[mask]
        parts = given if isinstance(given, Mapping) else {"": given}
        cut = {key: _shorter_mask(value, count, gone, sizes) for key, value in parts.items()}
        short[mask] = cut if isinstance(given, Mapping) else cut[""]
    upstream.ask_for_fewer_logits(short, count)
    return short


def kv_sizes(a_cache: Any, count: int, gone: int) -> dict[int, int]:
    """How many keys the masks are told to have for all the tokens → and for the ones that stay."""
    found = {}
    for layer in upstream.layers_of(a_cache):
        length = int(layer.get_seq_length()) if hasattr(layer, "get_seq_length") else 0
        before, after = (upstream.mask_sizes(layer, size, length) for size in (count + gone, count))
        if before and after:
            found[before[0]] = after[0]
    return found


def _shorter_mask(mask: Any, count: int, gone: int, sizes: Mapping[int, int]) -> Any:
    if not isinstance(mask, torch.Tensor):
        return mask
    if mask.ndim == 2:
        return mask[:, : mask.shape[1] - gone]
    return mask[..., :count, : sizes.get(mask.shape[-1], mask.shape[-1])]


def rows_of(value: Any, rows: Sequence[int], batch: int) -> Any:
    """The rows of every tensor whose first dimension is the batch."""
    if isinstance(value, torch.Tensor):
        return value[list(rows)] if value.ndim > 1 and value.shape[0] == batch else value
    if isinstance(value, tuple | list):
        return type(value)(rows_of(item, rows, batch) for item in value)
    if isinstance(value, Mapping):
        return type(value)(**{name: rows_of(item, rows, batch) for name, item in value.items()})
    return value
