"""How beams are searched, as plain values: what a plan with beams adds to the call of `generate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from conformance.case import Record, TokenId


class BeamSearch(Record):
    """sampled: beams are drawn, not the best kept; returned: at most so many sequences of a row; eos, pad: ids.

    chunk: how many tokens of the prompt a cached search reads in one forward (0: all of them).
    """

    sampled: bool = False
    returned: Annotated[int, Field(ge=1, le=4)] = 4
    length_penalty: Annotated[float, Field(ge=-2.0, le=2.0)] = 0.0
    early_stopping: bool | Literal["never"] = False
    eos: Annotated[tuple[TokenId, ...], Field(max_length=3, strict=False)] = ()
    pad: TokenId = 0
    chunk: Annotated[int, Field(ge=0, le=8)] = 0

    def tokens(self) -> tuple[int, ...]:
        """Every token id in it."""
        return (*self.eos, self.pad)

    def within(self, vocabulary: int) -> BeamSearch:
        """With its ids modulo the vocabulary."""
        return self.replace(eos=tuple(token % vocabulary for token in self.eos), pad=self.pad % vocabulary)

    def plainer(self) -> Iterator[BeamSearch]:
        """With one field back at its default."""
        for name in type(self).model_fields:
            if getattr(self, name) != getattr(PLAINEST, name):
                yield self.replace(**{name: getattr(PLAINEST, name)})

    def asked_for(self, beams: int) -> dict[str, Any]:
        """The fields of the `GenerationConfig` for a search with so many beams."""
        warpers = {"top_k": 0, "top_p": 1.0, "temperature": 1.0} if self.sampled else {}
        ids = {"eos_token_id": list(self.eos) or None, "pad_token_id": self.pad}
        return {
            "num_beams": beams,
            "num_return_sequences": min(self.returned, beams),
            "length_penalty": self.length_penalty,
            "early_stopping": self.early_stopping,
            "do_sample": self.sampled,
            **ids,
            **warpers,
        }

    def kept(self, tokens: list[int]) -> list[int]:
        """The tokens of a sequence up to its end: what follows only fills it up."""
        ends = [at for at, token in enumerate(tokens, 1) if token in self.eos]
        return tokens[: min(ends, default=len(tokens))]

    def events(self, beams: int) -> set[str]:
        """What a search with so many beams meets."""
        if beams < 2:
            return set()
        named = {"sampled": self.sampled, "end tokens": bool(self.eos), "chunked prompt": self.chunk > 0}
        return {"beams: several", *(f"beams: {name}" for name, there in named.items() if there)}


PLAINEST = BeamSearch()
