"""The tensors of a cache by the kind of its layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from conformance.snapshots import flatten

ENTRIES = re.compile(r"keys|values")
LAYER = re.compile(r"((?:\.\w+)?\.layers\.(\d+))\.")


def layers_of_kind(cache: Any, kind: str) -> Iterator[dict[str, torch.Tensor]]:
    """The tensors of each layer of one kind: name → tensor; a cache that has no layers is one of its own kind."""
    grouped: dict[str, dict[str, torch.Tensor]] = {}
    for path, leaf in flatten(cache):
        if not isinstance(leaf, torch.Tensor) or leaf.dim() < 2 or leaf.shape[0] != 2 or not leaf.numel():
            continue
        match = LAYER.match(path)
        crossed = ".cross_attention_cache" in path
        if crossed != (kind == "encoder-decoder"):
            continue
        owner = _owner(cache, match)
        if _belongs(kind, owner, path):
            grouped.setdefault(match[1] if match else "", {})[path] = leaf
    yield from grouped.values()


def _owner(cache: Any, match: re.Match[str] | None) -> str:
    """The class of the layer that holds a tensor."""
    if match is None:
        return type(cache).__name__
    holder = cache
    for part in match[1].split(".")[1:-1]:
        holder = getattr(holder, part)
    return type(holder[int(match[2])]).__name__


def _belongs(kind: str, owner: str, path: str) -> bool:
    entry, name = bool(ENTRIES.search(path)), path.rsplit(".layers.", 1)[-1]
    if kind == "recurrent":
        return "recurrent" in name
    if kind == "convolutional":
        return "conv" in name
    if kind in ("hybrid", "hybrid_sliding"):
        return "LinearAttentionAnd" in owner and ("Sliding" in owner) == (kind == "hybrid_sliding")
    if kind in ("sliding", "chunked"):
        return entry and "Sliding" in owner and "LinearAttentionAnd" not in owner
    if kind == "full":
        return entry and "Sliding" not in owner and "LinearAttentionAnd" not in owner
    if kind in ("indexed", "shared"):
        return entry
    # An own kind by its class, as `own:CLASS`; what else there is holds nothing but its cross attention.
    return not kind.startswith("own:") or owner == kind.removeprefix("own:")
