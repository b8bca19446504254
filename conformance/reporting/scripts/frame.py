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
CHANGES: dict[str, Any]  # of the `GenerationConfig` by the case's plan
GROUPS: list[int]  # how many of them in each forward
ROOM: int  # how many places an earlier call asked for beyond those that this one fills
OWN_POSITIONS: list[str]  # the keyword of a forward for positions, where the model counts them in its own way
TYPE: int  # of tokens that are generated, where a model is told of types
KEPT: list[str]  # attributes of modules that are no state, or that a call may change

IDS: dict[str, Any]  # special tokens as given: field of the generation config -> value
EXPECTED_IDS: Any  # what they become: name -> number or tuple, or why they are refused, as text
SPOKEN: dict[str, Any]  # eos and pad to decode with
PLAINLY: dict[str, Any]  # the same as plain numbers
HAS_MASK: bool  # whether the preparation is told of an attention mask
EXPLICIT_DEVICE: bool  # whether it is told the device, or takes the model's
BY_KEYWORD: bool  # whether ids are told as keywords of `generate`
STARTS: dict[str, Any]  # special tokens that a decoding starts with, as given
PASSED: dict[str, Any]  # the same tokens passed as ids; nothing where there are none
BEFORE: dict[str, Any]  # what else `generate` is given then
EXTRAS: dict[str, Any]  # keywords of `generate` that choose how to decode
DRAFT: int  # tokens that an assistant drafts; 0: there is none
MISPLACED: list[int]  # numbers of the parameters on `meta`; none: all

START: int  # how many tokens of the prompt the returned sequences begin with
ENDS: list[int]  # tokens that end a row
TURNS: list[tuple[int, int, dict[str, Any]]]  # earlier calls: ids from, to, and changes of the `GenerationConfig`
GIVEN: int  # how many ids the call that continues leaves out
MASKED: bool  # whether it is given a mask
POSITIONED: bool  # whether it is given the positions of its ids
FIRSTS: int  # how many preparations of the main model may be told of the first iteration
MOST: int  # tokens of a draft
PLACEHOLDERS: int  # positions of the prompt that stand for images or sound
DRAFTING: dict[str, Any]  # of the `GenerationConfig` of the model that drafts
NOISE: tuple[int, float]  # seed and relative size of that in the assistant's weights
OTHER: tuple[Any, ...]  # the assistant's class, config, kernel with weights, and own `GenerationConfig`
STOPPING: dict[str, Any]  # the keyword of `generate` for a custom stop condition
STRINGS: list[str]  # stop strings
LONGEST: int  # tokens of a sequence in all, by the caller's own limit
VOCABULARY: int  # how many tokens there are
SCRIPT: list[bool]  # whether an assistant says the right token, position by position, over and over
BEGUN: dict[str, Any]  # of the `GenerationConfig` of a model that drafts in an earlier call
RAISING: dict[str, Any]  # the same for a processor that raises
HOOK: str  # the keyword of `generate` for a hook that raises
RAISES_AT: int  # the call in which it does
SECOND: dict[str, Any]  # of the `GenerationConfig` of a call that goes on from the first

CACHE: dict[str, Any]  # fields of the `GenerationConfig` that ask for a class of cache
PREPARED: dict[str, Any]  # of the `GenerationConfig` of a call that only prepares a cache
NAME: str  # the keyword of a forward for a cache
TAKEN: list[str]  # the other keywords that the model's forward takes
PROGRAM: list[tuple[Any, ...]]  # what is done with a cache: forwards (rows, tokens before, ids), methods and arguments
LEFT: list[tuple[Any, ...]]  # the forwards alone that lead to what the program leaves
COUNTS: list[int]  # new tokens of a longer call, and of a short one
BEAMS: dict[str, Any]  # fields of the `GenerationConfig` for beam search


def make_model() -> Any:
    """A new model with the weights of the report."""


WEIGHT_SEED: int  # of the model's weights
SCALE: float  # of the model's weights
REMAKE: Callable[[Any], Any]  # the model of the report from the plain one: a subclass of it with ties, or another
PLACE: Callable[[Any, str, str], Any]  # a model, where it is saved, a folder for what is offloaded: the placed model
LOAD: Callable[[Any, str], Any]  # a model, where it is saved: what loads from there without a placement
SHARDS: dict[str, int]  # how it is saved: nothing, or the most bytes of a file
CALL: Callable[[Any, Any], Any]  # a model, the unplaced one: what `generate` returns


def fill(model: Any, seed: int, scale: float) -> None:
    """Weights as the report has them."""


def uniform(seed: int, name: str, shape: tuple[int, ...]) -> Any:
    """Numbers in [-1, 1), as the weights are made of."""
