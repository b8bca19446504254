"""Seeding torch without what `torch.manual_seed` costs on a machine that has no accelerator."""

from __future__ import annotations

import torch


def seed_everything(seed: int) -> None:
    """`torch.manual_seed` for every device that is there.

    Without an accelerator that function keeps a call, with the stack it came from, for each kind of device that may
    appear later: a tenth of a millisecond each, and memory that is never given back.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
