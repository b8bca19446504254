"""Weights that are the same on every release and every machine.

Each tensor is filled from its own counter-based generator, keyed by the weight seed and the tensor's
name: integers of PCG64, mapped to a uniform distribution by exact arithmetic. torch's own initialisers
differ between releases for several types, one-dimensional parameters included, so none of them is used.

The functions below the line are also copied, as they are, into reproducer scripts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import torch

# ---- copied into scripts


def uniform(seed: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in [-1, 1), float64, the same everywhere for the same seed, name and shape."""
    key = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:16], "little")
    raw = np.random.PCG64(key).random_raw(int(np.prod(shape, dtype=np.int64)))
    return ((raw >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0).reshape(shape)


def values(seed: int, name: str, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Values of the tensor `name`, by its role: decays stay stable, norms are near one, the rest has std `scale`."""
    u, last = uniform(seed, name, shape), name.rsplit(".", 1)[-1]
    if "A_log" in name:
        return 0.75 + 0.75 * u
    if any(part in name for part in ("dt_bias", "dt_proj.bias", "time_decay", "decay_bias")):
        return u - 1.0
    if last == "recurrent_param":
        return u - 2.0
    if "time_mix" in name:
        return 0.5 + 0.5 * u
    near_one = ("weight", "scale", "scalar", "gamma", "multiplier", "D", "skip")
    if len(shape) <= 1 and any(part in last for part in near_one):
        return 1.0 + 0.25 * u
    return u * (3.0**0.5) * scale


def fill(model: torch.nn.Module, seed: int, scale: float) -> None:
    """Fill all parameters in place, and the persistent buffers that are all zeros or all ones."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(torch.from_numpy(np.asarray(values(seed, name, tuple(tensor.shape), scale))))
        state = model.state_dict(keep_vars=True)
        for name, tensor in model.named_buffers():
            # Any other buffer follows from the config, as a decay or a position table does.
            plain = tensor.is_floating_point() and tensor.numel() and ((tensor == 0).all() or (tensor == 1).all())
            if name in state and plain:
                noise = torch.from_numpy(np.asarray(uniform(seed, name, tuple(tensor.shape))))
                tensor.add_(noise.to(tensor.dtype), alpha=0.1 * scale)


# ---- end of what is copied


def tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Every parameter and persistent buffer once, under its canonical (first) name."""
    yield from model.named_parameters()
    state = model.state_dict(keep_vars=True)
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in state)


def perturb(model: torch.nn.Module, seed: int, relative: float) -> None:
    """Multiply every weight by 1 + relative * u, u uniform in [-1, 1): what rounding could have done."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.is_floating_point():
                noise = torch.from_numpy(np.asarray(uniform(seed, f"noise:{name}", tuple(tensor.shape))))
                tensor.mul_((1.0 + relative * noise).to(tensor.dtype))
