"""Where a row has to end: the rule that `generate` is held to, on plain values.

A row ends at its first end token, where one of its criteria says so, or at the limit, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from conformance.case import Settings

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXT_LENGTH = 3  # letters a token: enough for a vocabulary of 17,576


@dataclass(frozen=True)
class Ending:
    """The step, from 0, whose token is the row's last, and what ends it there; an end token comes first."""

    step: int
    by: Literal["eos", "criterion", "length"]


def text_of(token: int) -> str:
    """What a token reads as: three letters, its own, the last one changing fastest."""
    places = [token // len(LETTERS) ** power % len(LETTERS) for power in reversed(range(TEXT_LENGTH))]
    return "".join(LETTERS[place] for place in places)


def ending_of(settings: Settings, row: int, before: Sequence[int], tokens: Sequence[int]) -> Ending | None:
    """The row's ending, given the tokens before it (of its prompt) and its new ones; None where it has not ended."""
    told = min((step for of, step in settings.row_stops if of == row), default=None)
    text = "".join(text_of(token) for token in before)
    for step, token in enumerate(tokens):
        already, text = len(text), text + text_of(token)
        if token in settings.eos:
            return Ending(step, "eos")
        if step == told or any(_found(string, text, already) for string in settings.stop):
            return Ending(step, "criterion")
        if step == settings.max_new_tokens - 1:
            return Ending(step, "length")
    return None


def until_end(tokens: Sequence[int], ends: Sequence[int]) -> list[int]:
    """The tokens up to and with the first end token, where nothing else ends a row."""
    end = next((step for step, token in enumerate(tokens) if token in ends), None)
    return list(tokens if end is None else tokens[: end + 1])


def _found(string: str, text: str, already: int) -> bool:
    """Whether the string ends inside what was added after the first `already` letters."""
    return string in text[max(0, already - len(string) + 1) :]
