"""What steers the scores of a decoding, as plain values: processors that `generate` makes itself where told so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from conformance.case import Record, TokenId

Tokens = Annotated[tuple[TokenId, ...], Field(max_length=6, strict=False)]
Places = Annotated[int, Field(ge=0, le=64)]
# A token, and how many of the last ids of the first row's prompt come before it.
Word = Annotated[tuple[Places, TokenId], Field(strict=False)]


class Steering(Record):
    """All off by default; at its default each field is not told at all.

    repetition, encoder_repetition: penalties; ngrams, encoder_ngrams: lengths that may not repeat. bias, bad_words: of
    a token after so many of the last ids of the first row's prompt, by themselves where that is 0; weight: of a bias.
    allowed: the tokens that row 0 may say, each one more for every further row. eos, min_new: end tokens and the least
    number of new tokens; decay: the new token after which end tokens become likelier, and how fast (0: they do not).
    suppress, suppress_first: tokens that are never said, or not as the first. watermark: of green tokens, told as a
    dictionary. encoded: the encoder's output is given in place of the prompt's ids, of which nothing is known then.
    Only where sampled: temperature, and what leaves tokens out (`conformance.steering.warpers`).
    """

    repetition: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    encoder_repetition: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    ngrams: Annotated[int, Field(ge=0, le=4)] = 0
    encoder_ngrams: Annotated[int, Field(ge=0, le=4)] = 0
    bias: Annotated[tuple[Word, ...], Field(max_length=4, strict=False)] = ()
    weight: Annotated[float, Field(ge=-8.0, le=8.0)] = 4.0
    bad_words: Annotated[tuple[Word, ...], Field(max_length=4, strict=False)] = ()
    allowed: Tokens = ()
    eos: Tokens = ()
    min_new: Annotated[int, Field(ge=0, le=8)] = 0
    decay_after: Annotated[int, Field(ge=0, le=8)] = 0
    decay: Annotated[float, Field(ge=0.0, le=2.0)] = 0.0
    suppress: Tokens = ()
    suppress_first: Tokens = ()
    watermark: bool = False
    renormalize: bool = False
    encoded: bool = False
    temperature: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=64)] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    min_p: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    top_h: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    typical_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    epsilon_cutoff: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    eta_cutoff: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0

    def tokens(self) -> tuple[int, ...]:
        """Every token id in it."""
        words = (token for _, token in (*self.bias, *self.bad_words))
        return (*words, *self.allowed, *self.eos, *self.suppress, *self.suppress_first)

    def within(self, vocabulary: int) -> Steering:
        """With its ids modulo the vocabulary."""
        fields: dict[str, Any] = {
            name: tuple((back, token % vocabulary) for back, token in getattr(self, name))
            for name in ("bias", "bad_words")
        }
        for name in ("allowed", "eos", "suppress", "suppress_first"):
            fields[name] = tuple(token % vocabulary for token in getattr(self, name))
        return self.replace(**fields)

    def plainer(self) -> Iterator[Steering]:
        """With one field back at its default."""
        for name in self.told():
            yield self.replace(**{name: getattr(PLAIN, name)})

    def told(self) -> tuple[str, ...]:
        """The names of the fields that are not at their default."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) != getattr(PLAIN, name))


PLAIN = Steering()
