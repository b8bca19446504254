"""What a cache holds, without what is in its memory but not part of it."""

from __future__ import annotations

from typing import Any

import torch

from conformance.snapshots import Flat


def without_garbage(cache: Flat) -> Flat:
    """The leaves of a cache, those of a static layer cut to its length: what a crop left behind them is no content."""
    found = dict(cache)
    for path, size in cache.items():
        layer, _, name = path.rpartition(".")
        length = cache.get(f"{layer}.cumulative_length") if name == "max_cache_len" else None
        if length is not None:
            for leaf in [p for p in cache if p.rpartition(".")[0] == layer]:
                found[leaf] = _cut(cache[leaf], int(size), int(length))
    return found


def _cut(leaf: Any, size: int, length: int) -> Any:
    """Tokens are the last dimension but one, of keys and values as of an indexer's keys."""
    if isinstance(leaf, torch.Tensor) and leaf.dim() >= 3 and leaf.shape[-2] == size:
        return leaf[..., : min(length, size), :]
    return leaf
