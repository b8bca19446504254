# ruff: noqa: INP001
"""What every script defines for the bodies in this folder: names for the linter, never run or copied.

A script holds only those of the constants that its body imports from here.
"""

from __future__ import annotations

from typing import Any

import torch

INPUTS: dict[str, torch.Tensor]  # `input_ids` and `attention_mask` of the rows that run, padded on the left
ALONE: dict[str, torch.Tensor]  # the same of one row, without padding
ROW: int  # its number
SETTINGS: dict[str, Any]  # of the `GenerationConfig`
SEED: int  # of the sampling; a line that seeds is left out where nothing is sampled
TOKENS: list[int]  # fed after the prompt
CHANGES: dict[str, Any]  # of the `GenerationConfig` by the case's plan
GROUPS: list[int]  # how many of them in each forward
KEPT: list[str]  # attributes of modules that are no state, or that a call may change


def make_model() -> Any:
    """A new model with the weights of the report."""
