# ruff: noqa: INP001
"""Recorded states against those of plain decoding, as `conformance.drafting.states` compares them."""

from __future__ import annotations

from typing import Any

import torch


def gaps(out: Any, plain: Any) -> dict[str, str]:
    """Each recorded state: as plain decoding has it, or how far off at the best alignment of the attention's keys."""
    found = {}
    for name in (n for n in plain if n.endswith(("hidden_states", "attentions")) and not n.startswith("encoder")):
        for step, layers in enumerate(plain[name] or ()):
            for layer, wanted in enumerate(layers):
                has = step < len(out[name])
                found[f"{name} {step} {layer}"] = gap(out[name][step][layer], wanted) if has else "missing"
    return found


def gap(got: torch.Tensor, wanted: torch.Tensor) -> str:
    """What to say of one state."""
    if got.shape[:-1] != wanted.shape[:-1]:
        return f"shape {list(got.shape)}"
    short, long = sorted((got, wanted), key=lambda state: state.shape[-1])
    room = long.shape[-1] - short.shape[-1]
    moved = [torch.nn.functional.pad(short, (at, room - at)) - long for at in range(room + 1)]
    size = min(float(one.abs().max()) for one in moved)
    return "as in plain decoding" if size <= 1e-3 * float(wanted.abs().nan_to_num().max()) else f"off by {size:.1e}"
