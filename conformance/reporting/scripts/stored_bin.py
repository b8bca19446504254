# ruff: noqa: INP001
"""An unplaced model saved in torch's own format."""

from __future__ import annotations

from typing import Any

import torch


def store(model: Any, folder: str) -> None:
    """With the config beside it."""
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), f"{folder}/pytorch_model.bin")
