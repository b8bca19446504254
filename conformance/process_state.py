"""What is the process's own, and every later call depends on: torch's switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_SWITCHES: dict[str, Callable[[], Any]] = {
    "gradients": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "autocast": lambda: torch.is_autocast_enabled("cpu"),
    "default dtype": torch.get_default_dtype,
    "default device": torch.get_default_device,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "precision of matrix products": torch.get_float32_matmul_precision,
    "threads": torch.get_num_threads,
}


def process_state() -> dict[str, str]:
    """Each switch, as `process.NAME` → its value in words."""
    return {f"process.{name}": str(read()) for name, read in _SWITCHES.items()}
