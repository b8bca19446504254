# ruff: noqa: INP001
"""As `recompute`, for a prompt with images or sound, and for a type that has a way of its own to count positions."""

from __future__ import annotations

import inspect

import torch

from conformance.reporting.scripts.frame import INPUTS, OWN_POSITIONS, TYPE, make_model


@torch.no_grad()
def recompute(sequence: torch.Tensor, start: int) -> torch.Tensor:
    """The logits after the first `start` tokens and after each that follows: one forward each, over all, no cache."""
    model, logits = make_model(), []
    taken = [name for name in inspect.signature(model.forward).parameters if name not in OWN_POSITIONS]
    for end in range(start, sequence.shape[1] + 1):
        ids, positions = sequence[:1, :end], torch.arange(end)[None]
        args = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "position_ids": positions}
        args = {name: value for name, value in args.items() if name in taken}
        for name in INPUTS.keys() - {"input_ids", "attention_mask"}:
            new = end - start if name.endswith("type_ids") else 0
            args[name] = torch.nn.functional.pad(INPUTS[name], (0, new), value=TYPE) if new else INPUTS[name]
        logits.append(model(**args, use_cache=False).logits[0, -1])
    return torch.stack(logits)
