# ruff: noqa: INP001
"""What the installed release makes of special tokens."""

from __future__ import annotations

from typing import Any


def prepare(model: Any, config: Any, has_mask: bool, device: str | None, may_refuse: bool) -> dict[str, str]:
    """Each token's values (its shape, on `meta`) and device; nothing at all where it is refused and may be."""
    try:
        model._prepare_special_tokens(config, has_mask, device=device)
    except Exception:
        if may_refuse:
            return {}
        raise
    made = {name: getattr(config, f"_{name}_token_tensor") for name in ("bos", "eos", "pad", "decoder_start")}
    return {name: told(tensor, device or model.device.type) for name, tensor in made.items()}


def told(tensor: Any, device: str) -> str:
    """Values or shape, and the device."""
    if tensor is None:
        return f"None on {device}"
    values = tensor.tolist() if not tensor.is_meta else tensor.shape
    return f"{tuple(values) if isinstance(values, list) else values} on {tensor.device.type}"
