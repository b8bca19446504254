# ruff: noqa: INP001
"""What every script defines for the bodies in this folder: names for the linter, never run or copied.

A script holds only those of the constants that its body imports from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

INPUTS: dict[str, torch.Tensor]  # `input_ids` and `attention_mask` of the rows that run, padded on the left
ALONE: dict[str, torch.Tensor]  # the same of one row, without padding
ROW: int  # its number
SETTINGS: dict[str, Any]  # of the `GenerationConfig`
SEED: int  # of the sampling; a line that seeds is left out where nothing is sampled
TOKENS: list[int]  # fed after the prompt
GROUPS: list[int]  # how many of them in each forward
KEPT: list[str]  # attributes of modules that are no state, or that a call may change


def make_model() -> Any:
    """A new model with the weights of the report."""


WEIGHT_SEED: int  # of the model's weights
SCALE: float  # of the model's weights
REMAKE: Callable[[Any], Any]  # the model of the report from the plain one: a subclass of it with ties, or another
PLACE: Callable[[Any, str, str], Any]  # a model, where it is saved, a folder for what is offloaded: the placed model
CALL: Callable[[Any, Any], Any]  # a model, the unplaced one: what `generate` returns


def fill(model: Any, seed: int, scale: float) -> None:
    """Weights as the report has them."""
