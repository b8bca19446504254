# ruff: noqa: INP001
"""What every script defines for the bodies in this folder: names for the linter, never run or copied.

A script holds only those of the constants that its body imports from here.
"""

from __future__ import annotations

from typing import Any, NoReturn

ROWS: list[list[int]]  # token ids of the prompt, without padding
SETTINGS: dict[str, Any]  # of the `GenerationConfig`
SEED: int  # of the sampling
CONTINUATION: list[int]  # tokens fed after the first row
GROUPS: list[int]  # how many of them in each forward
BOUND: float  # of rounding, relative to the largest logit


def make_model() -> Any:
    """A new model with the weights of the report; exits with 2 where the release cannot build it."""


def batch(rows: list[list[int]]) -> dict[str, Any]:
    """`input_ids` and `attention_mask` of these rows, padded on the left."""
    raise NotImplementedError


def fault(expected: object, got: object) -> NoReturn:
    """Print both sides and exit with 1."""
    raise NotImplementedError
