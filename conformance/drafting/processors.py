"""The processors and criteria that a caller gives `generate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria, StopStringCriteria

from conformance.endings import LETTERS, text_of
from conformance.limits import TookTooLong
from conformance.stopping_settings import tokenizer


class EndsWith(StoppingCriteria):
    """A custom stop condition: the last token is one of these."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = torch.tensor(list(tokens))

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Of shape (batch,)."""
        return torch.isin(input_ids[:, -1], self.tokens)


def told_as_text(tokens: Sequence[int]) -> list[int]:
    """Which of these a stop string tells: of a token that no others together read as."""
    return [token for token in tokens if LETTERS[0] not in text_of(token)[1:]]


def stop_conditions(tokens: Sequence[int], vocabulary: int, as_text: bool) -> tuple[StoppingCriteria, ...]:
    """What stops after any of these tokens; `as_text`: a stop string where no other tokens together read as it does."""
    told = told_as_text(tokens) if as_text else []
    others = [token for token in tokens if token not in told]
    found: list[StoppingCriteria] = [EndsWith(others)] if others else []
    if told:
        strings = [text_of(token) for token in told]
        found.append(StopStringCriteria(tokenizer=tokenizer(vocabulary), stop_strings=strings))
    return tuple(found)


class Forced(LogitsProcessor):
    """Allows one token only: that of `tokens`, shape (batch, length), at the next position."""

    def __init__(self, tokens: torch.Tensor, offset: int = 0) -> None:
        self.tokens, self.offset = tokens, offset

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores of shape (batch, vocabulary)."""
        position = min(input_ids.shape[1] + self.offset, self.tokens.shape[1] - 1)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter(1, self.tokens[: len(scores), position : position + 1], 0.0)


class Raises(LogitsProcessor):
    """A user's processor that raises after some calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores as they are, shape (batch, vocabulary)."""
        self.left -= 1
        if self.left < 0:
            raise InterruptedError("a user's processor")
        return scores


class Patience(StoppingCriteria):
    """Stops nothing; raises where it was asked so often about the same length that the loop has no end."""

    MOST = 30

    def __init__(self) -> None:
        self.length, self.times = -1, 0

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Of shape (batch,)."""
        length = input_ids.shape[1]
        self.length, self.times = length, self.times + 1 if length == self.length else 1
        if self.times > self.MOST:
            raise TookTooLong(f"{self.times} rounds without a new token")
        return torch.zeros(len(input_ids), dtype=torch.bool)


class After(StoppingCriteria):
    """Stops at a length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Of shape (batch,)."""
        return torch.full((len(input_ids),), input_ids.shape[1] >= self.length)
