"""The installed preparation of special tokens, and what it warns of."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# What the installed `_prepare_special_tokens` warns of: kind → words that every release says it with.
SPECIAL_TOKEN_WARNINGS = {
    "mask and pad not set": "pad token id were not set",
    "pad is an eos": "pad token is",
    "pad taken from eos": "Setting `pad_token_id`",
    "eos not positive": "should consist of positive integers",
}


def bare_generation_config() -> Any:
    """A generation config in which nothing is set."""
    from transformers import GenerationConfig

    return GenerationConfig()


def generation_logger() -> logging.Logger:
    """The logger that `generate` warns through."""
    return logging.getLogger("transformers.generation.utils")


@contextmanager
def special_token_warnings() -> Iterator[list[str]]:
    """Kinds of warnings said through that logger or as Python's, in order; those given once are given again."""
    logger = generation_logger()
    kinds: list[str] = []

    def heard(message: str) -> None:
        kinds.extend(kind for kind, words in SPECIAL_TOKEN_WARNINGS.items() if words in message)

    def kind_of(record: logging.LogRecord) -> bool:
        heard(record.getMessage())
        return False  # said to nobody else

    once = getattr(type(logger), "warning_once", None)
    if once is not None and hasattr(once, "cache_clear"):
        once.cache_clear()
    silent, level = not logger.isEnabledFor(logging.WARNING), logger.level
    logger.addFilter(kind_of)
    if silent:  # each change of a level empties a cache of every logger there is
        logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_, **__: heard(str(message))
            yield kinds
    finally:
        if silent:
            logger.setLevel(level)
        logger.removeFilter(kind_of)


@cache
def special_tokens_know_the_batch() -> bool:
    """Whether special tokens are prepared knowing the number of rows: 5.13 on, warnings for several rows only."""
    from transformers.generation.utils import GenerationMixin

    return "batch_size" in inspect.signature(GenerationMixin._prepare_special_tokens).parameters


def announces_pad_token() -> bool:
    """Whether taking the pad token from the end token is announced by a warning: before 5.13."""
    return not special_tokens_know_the_batch()


def prepare_special_tokens(
    model: Any, generation_config: Any, *, has_mask: bool | None, device: Any, batch_size: int | None
) -> None:
    """The installed preparation: sets `_bos_token_tensor` and its like on the config that it is given."""
    known = {"batch_size": batch_size} if special_tokens_know_the_batch() else {}
    model._prepare_special_tokens(generation_config, has_mask, device=device, **known)
