"""What a cache shows of itself: lengths, mask sizes, and the contents that the next forward can see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from conformance import upstream
from conformance.snapshots import Flat, flatten

RESIDUAL = "residual_length"  # the most that a quantised layer keeps as it is
ASKED_FOR = (1, 3)  # tokens of the forwards whose masks are asked for


def lengths(cache: Any) -> list[int | None]:
    """The length that each layer tells; None where a layer has none. One entry for a cache without layers."""
    layers = upstream.layers_of(cache)
    tell = [getattr(layer, "get_seq_length", None) for layer in layers] or [getattr(cache, "get_seq_length", None)]
    return [None if ask is None else _number(ask) for ask in tell]


def _number(ask: Any) -> int | None:
    try:
        return int(ask())
    except (AttributeError, TypeError, ValueError, NotImplementedError):  # kinds that have no length to tell
        return None


def masks(cache: Any) -> list[tuple[int, ...] | None]:
    """The mask sizes that each layer tells for one token and for several, in this order."""
    told = []
    for layer in upstream.layers_of(cache):
        length = _number(layer.get_seq_length) if hasattr(layer, "get_seq_length") else None
        told += [upstream.mask_sizes(layer, count, length or 0) for count in ASKED_FOR]
    return told


def told(cache: Any) -> dict[str, Any]:
    """What a cache tells of itself, layer by layer and as a whole, by the field of a difference."""
    return {
        "length": lengths(cache),
        "mask sizes": masks(cache),
        **(upstream.told_of(cache) if cache is not None else {}),
    }


def everything(cache: Any) -> Flat:
    """A flat copy of a whole cache, for a bitwise comparison."""
    leaves = dict(flatten(cache))
    return {path: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for path, leaf in leaves.items()}


def visible(cache: Any) -> dict[str, tuple[torch.Tensor, bool]]:
    """Path → (states, whether the newest are at the end) of every tensor that the next forward can see.

    A static layer's rows beyond its length are left out: they are what was there before. So are attributes with a
    leading underscore: what a layer keeps there may be put in order only by its next update (a quantised one's beams).
    """
    found: dict[str, tuple[torch.Tensor, bool]] = {}
    for number, layer in enumerate(upstream.layers_of(cache)):
        for path, tensor in _states(vars(layer)):
            found[f"layers.{number}{path}"] = _trimmed(layer, path, tensor)
        found |= {
            f"layers.{number}.{name} of 8 bits": (kept, True) for name, kept in upstream.eight_bits(layer).items()
        }
    if not found and cache is not None:
        found = {path: (tensor, True) for path, tensor in _states(cache)}
    return found


def _states(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    for path, leaf in flatten(value):
        if "._" in path:
            continue
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.ndim > 1:
            yield path, leaf


def holds_states(cache: Any) -> bool:
    """Whether there is any state in a cache, of tokens or of none: what a reset did not drop is of a fixed batch."""
    leaves = (leaf for _, leaf in flatten(cache))
    return any(isinstance(leaf, torch.Tensor) and leaf.ndim > 1 and leaf.numel() for leaf in leaves)


def _trimmed(layer: Any, path: str, tensor: torch.Tensor) -> tuple[torch.Tensor, bool]:
    room = getattr(layer, "max_cache_len", None)
    axis = next((a for a in (-2, -1, 1) if tensor.ndim > 1 and tensor.shape[a] == room), None)
    if room is None or axis is None or "conv" in path or "recurrent" in path:
        return tensor, True
    length = _number(layer.get_seq_length) or 0
    return tensor.narrow(axis, 0, max(min(length, room), 0)), False


def stored(shown: Mapping[str, tuple[torch.Tensor, bool]]) -> dict[str, int]:
    """Path → the number of states that every visible tensor holds for a row."""
    return {path: tensor.numel() // max(tensor.shape[0], 1) for path, (tensor, _) in shown.items()}


def overfull(cache: Any) -> str | None:
    """How many tokens too many a layer keeps as they are, in words; None where none has a residual length."""
    sizes = [(layer.residual_length, layer.keys) for layer in upstream.layers_of(cache) if hasattr(layer, RESIDUAL)]
    for most, keys in sizes:
        if keys is not None and keys.ndim > 1 and keys.shape[-2] > most:
            return f"{keys.shape[-2]} tokens are kept as they are, where {most} may be"
    return "" if sizes else None


def apart(
    got: Mapping[str, tuple[torch.Tensor, bool]], expected: Mapping[str, tuple[torch.Tensor, bool]]
) -> tuple[float, str]:
    """How far the visible states are from the expected ones, relative to the largest of their tensor, and where.

    Where one side stores more, the newest that both have are compared: what is needed is for the next forward to tell.
    States that are gone, or of other rows or another dtype, are infinitely far: some wait for many forwards to be read.
    """
    worst, place = 0.0, ""
    for path, (wanted, at_end) in expected.items():
        if wanted.numel() == 0:
            continue
        mine = got[path][0] if path in got else None
        if mine is None or mine.numel() == 0 or not _alike(mine, wanted):
            return float("inf"), path
        mine, wanted = _common(mine, wanted, at_end), _common(wanted, mine, at_end)
        size = _gap(mine, wanted)
        if size > worst:
            worst, place = size, path
    return worst, place


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.ndim == other.ndim and one.shape[0] == other.shape[0] and one.dtype == other.dtype


def _common(one: torch.Tensor, other: torch.Tensor, at_end: bool) -> torch.Tensor:
    """The part of `one` that is no longer than `other` along any axis, at its end or at its beginning."""
    for axis in range(one.ndim):
        size = min(one.shape[axis], other.shape[axis])
        one = one.narrow(axis, one.shape[axis] - size if at_end else 0, size)
    return one


def _gap(mine: torch.Tensor, wanted: torch.Tensor) -> float:
    if mine.dtype == wanted.dtype and torch.equal(mine, wanted):
        return 0.0
    mine, wanted = mine.double(), wanted.double()
    finite = wanted.isfinite()
    if not torch.equal(mine.isfinite(), finite):
        return float("inf")
    scale = float(wanted[finite].abs().max()) if finite.any() else 1.0
    return float((mine - wanted)[finite].abs().max()) / (scale or 1.0) if finite.any() else 0.0
