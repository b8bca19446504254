"""Recorded states of two runs: hidden states and attention weights, step by step and layer by layer."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.cache_contents import without_garbage
from conformance.outcome import Outcome
from conformance.snapshots import Flat, same
from conformance.verdicts import Comparison, Difference

# Relative to the largest value of the layer. States are sums of fewer terms than logits, and what goes wrong with them
# is another position's state: rounding was at most 1e-5, a wrong slice at least 1e-1.
STATE_BOUND = 1e-3


def compare_states(got: dict[str, Any], expected: dict[str, Any], steps: int) -> Comparison:
    """Flat states by path (`.hidden_states.STEP.LAYER`), for the first `steps` steps; the first that differs.

    As many entries as plain decoding has, too: what was rejected has none.
    Attention weights may lack, or have besides, keys that get no weight at all: how many a layer shows depends on how
    many tokens were fed together.
    """
    for path in sorted(expected, key=_order):
        if path.endswith(".length") or _step(path) >= steps:
            continue
        name = path.split(".")[1]
        if path not in got:
            return Comparison.of(Difference("missing", name, "an entry for every step", f"none for {path}", path))
        found = _departure(name, got[path], expected[path])
        if found is not None:
            return Comparison.of(Difference("values", name, f"plain decoding's within {STATE_BOUND:g}", found, path))
    wanted, seen = entries(expected), entries(got)
    for name in sorted(wanted):
        right, there = min(wanted[name], steps), seen.get(name, 0)
        if there != right:
            return Comparison.of(Difference("length", name, f"{right} entries", f"{there}"))
    return Comparison()


def entries(states: dict[str, Any]) -> dict[str, int]:
    """How many entries there are of each kind of state that is recorded step by step."""
    last = {path.split(".")[1]: 0 for path in states}
    for path in states:
        name, step = path.split(".")[1], path.split(".")[2]
        if step.isdigit() and not path.startswith(".encoder"):
            last[name] = max(last[name], int(step) + 1)
    return last


def _step(path: str) -> int:
    part = path.split(".")[2]
    return int(part) if part.isdigit() and not path.startswith(".encoder") else 0


def _order(path: str) -> tuple[str, int, str]:
    return path.split(".")[1], _step(path), path


def _departure(name: str, got: Any, expected: Any) -> str | None:
    if not isinstance(got, torch.Tensor) or not isinstance(expected, torch.Tensor):
        return None if type(got) is type(expected) else f"{type(got).__name__}, not {type(expected).__name__}"
    bound = STATE_BOUND * max(float(expected.abs().nan_to_num().max()), 1e-6)
    if name.endswith("attentions"):
        gap = aligned_gap(got, expected)
    else:
        gap = float((got - expected).abs().max()) if got.shape == expected.shape else None
    if gap is None:
        return f"shape {list(got.shape)}, not {list(expected.shape)}"
    return f"off by {gap:.1e}" if not gap <= bound else None


def aligned_gap(got: torch.Tensor, expected: torch.Tensor) -> float | None:
    """The largest difference of attention weights, shape (..., keys), at the best alignment of their keys.

    Keys beyond the shorter of the two count with their weight; None where the other dimensions differ.
    """
    if got.shape[:-1] != expected.shape[:-1]:
        return None
    short, long = sorted((got, expected), key=lambda tensor: tensor.shape[-1])
    gaps = []
    for start in range(long.shape[-1] - short.shape[-1] + 1):
        padded = torch.zeros_like(long)
        padded[..., start : start + short.shape[-1]] = short
        gaps.append(float((padded - long).abs().max()))
    return min(gaps)


def compare_caches(got: Outcome, expected: Outcome) -> Comparison:
    """Two returned caches: length, flags, sizes, and contents within the bound of states.

    Of a static cache what is beyond its length is no content.
    """
    if got.cache_length != expected.cache_length:
        return Comparison.of(Difference("length", "cache", str(expected.cache_length), str(got.cache_length)))
    ours, plain = without_garbage(got.cache), without_garbage(expected.cache)
    for path in sorted({*ours, *plain}):
        if path.endswith(f".{upstream.MAKES_LAYERS}") or (_unread(path, got.cache) and _unread(path, expected.cache)):
            continue
        field = "cache " + path.rsplit(".", 1)[-1]
        if path not in ours or path not in plain:
            kind = "removed" if path in plain else "added"
            return Comparison.of(Difference(kind, field, "the same parts", f"{path}: {kind}", path))
        mine, theirs = ours[path], plain[path]
        both = isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor)
        if both and mine.shape != theirs.shape:
            return Comparison.of(Difference("shape", field, str(list(theirs.shape)), str(list(mine.shape)), path))
        if both and mine.is_floating_point() and mine.numel():
            found = _departure("cache", mine, theirs)
            if found is not None:
                return Comparison.of(Difference("values", field, f"the same within {STATE_BOUND:g}", found, path))
        elif not same(mine, theirs):
            return Comparison.of(Difference("changed", field, str(theirs), str(mine), path))
    return Comparison()


def _unread(path: str, cache: Flat) -> bool:
    """Whether a leaf is a count that its layer, which is full, neither reads nor keeps up."""
    layer, _, name = path.rpartition(".")
    count, full = (cache.get(f"{layer}.{leaf}") for leaf in (upstream.COUNTED, upstream.FULL_AT))
    return name == upstream.COUNTED_UNTIL_FULL and count is not None and full is not None and count >= full
