"""From the settings of a case to what `generate` is told about stopping: config fields, and criteria."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from conformance.case import Settings
from conformance.endings import LETTERS, text_of

DEFAULT_NEW_TOKENS = 20  # what `generate` takes where it is told no limit
NEVER_REACHED = 100_000.0  # seconds


def stopping_fields(settings: Settings, width: int, vocabulary: int) -> dict[str, Any]:
    """Fields of the `GenerationConfig`; `width` is the number of tokens that the sequences begin with."""
    limit, fields = settings.max_new_tokens, _minimum(settings, width)
    if settings.limit != "max_length" and not (settings.limit == "neither" and limit == DEFAULT_NEW_TOKENS):
        fields["max_new_tokens"] = limit
    if settings.limit == "max_length":
        fields["max_length"] = width + limit
    if settings.limit == "both":
        fields["max_length"] = width + limit + 3  # the other one counts
    if settings.max_time:
        fields["max_time"] = NEVER_REACHED
    if settings.copies > 1:
        fields["num_return_sequences"] = settings.copies
    return fields | _about_eos(settings, vocabulary)


def _minimum(settings: Settings, width: int) -> dict[str, Any]:
    if not settings.min_new_tokens:
        return {}
    count = settings.min_new_tokens
    return {"min_length": width + count} if settings.min_as_length else {"min_new_tokens": count}


def _about_eos(settings: Settings, vocabulary: int) -> dict[str, Any]:
    eos = list(settings.eos)
    if not eos:
        return {}
    fields: dict[str, Any] = {}
    if settings.forced_eos and settings.against_eos == "nothing":  # both together leave no token at all
        fields["forced_eos_token_id"] = eos
    if settings.against_eos == "suppress":
        fields["suppress_tokens"] = eos
    if settings.against_eos == "begin suppress":
        fields["begin_suppress_tokens"] = eos
    if settings.against_eos == "bad words":  # an end token by itself is no bad word, in spite of what is said
        fields["bad_words_ids"] = [[eos[0]], [(eos[0] + 1) % vocabulary], [(eos[0] + 2) % vocabulary, eos[0]]]
    return fields


def length_criterion(length: int) -> Any:
    """The installed criterion for lengths, as a caller's own: `generate` takes it in the place of the one it makes."""
    from transformers.generation.stopping_criteria import MaxLengthCriteria

    return MaxLengthCriteria(max_length=length)


class RowStops:
    """A stopping criterion that ends each row at a step of its own."""

    def __init__(self, steps: Sequence[int | None], start: int) -> None:
        self.steps, self.start = tuple(steps), start

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> Any:
        """Which rows are done, shape (rows,): those that hold the token of their step."""
        import torch

        new = input_ids.shape[1] - self.start
        done = torch.tensor([step is not None and new > step for step in self.steps], device=input_ids.device)
        return done.repeat_interleave(input_ids.shape[0] // len(self.steps))


class StopStrings:
    """The installed criterion for stop strings; `generate_keywords` have `generate` make it itself, where told so."""

    def __init__(self, strings: Sequence[str], vocabulary: int, by_keyword: bool) -> None:
        from transformers.generation.stopping_criteria import StopStringCriteria

        told = {"tokenizer": tokenizer(vocabulary), "stop_strings": list(strings)}
        self.generate_keywords = told if by_keyword else {}
        self._criterion = StopStringCriteria(**told)

    def __call__(self, input_ids: Any, scores: Any, **others: Any) -> Any:
        """Which rows are done, shape (rows,)."""
        return self._criterion(input_ids, scores, **others)


def own_criteria(settings: Settings, rows: Sequence[int], width: int, vocabulary: int) -> tuple[Any, ...]:
    """The criteria that the caller adds, for these rows of the prompt."""
    criteria: list[Any] = []
    if settings.row_stops:
        steps = [min((step for of, step in settings.row_stops if of == row), default=None) for row in rows]
        criteria.append(RowStops(steps, width))
    if settings.stop:
        criteria.append(StopStrings(settings.stop, vocabulary, settings.stop_by_keyword))
    return tuple(criteria)


@cache
def tokenizer(vocabulary: int) -> Any:
    """A tokenizer made on the spot: every token of the vocabulary reads as its three letters.

    Text is cut into letters, which are tokens beyond the vocabulary.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [*(text_of(token) for token in range(vocabulary)), *LETTERS]
    made = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token=LETTERS[0]))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=made)
