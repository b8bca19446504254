"""The settings of a case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from conformance.case.values import Record, RowAndStep, StopString, TokenId


class Settings(Record):
    """How to generate: what reaches `generate` as its `GenerationConfig`.

    eos_at: end tokens told by place, as (row, step): the token that this row's own decoding gives at that step. Where
    `eos` is empty they are looked up when the case is judged (`runs.resolved`), and the case goes on with both.
    eos_unused: how many end tokens that no row says are added to them. pad: None is not given at all.
    limit: how `generate` is told `max_new_tokens`; `neither` holds where that is what it takes anyway.
    min_new_tokens: told as `min_length` if `min_as_length`. stop: strings in the texts of tokens (`endings.text_of`);
    stop_at tells them by place as eos_at does; stop_by_keyword: they are keywords of `generate`, where it decodes by a
    loop of its own, and no criterion. row_stops: a criterion of the caller's ends this row at this step.
    max_time: a time limit that is never reached. against_eos: what forbids the end tokens. returned: sequences for
    each row where it is sampled.
    """

    max_new_tokens: Annotated[int, Field(ge=1, le=64)] = 1
    limit: Literal["max_new_tokens", "max_length", "both", "neither"] = "max_new_tokens"
    min_new_tokens: Annotated[int, Field(ge=0, le=64)] = 0
    min_as_length: bool = False
    eos: Annotated[tuple[TokenId, ...], Field(max_length=16, strict=False)] = ()
    eos_at: Annotated[tuple[RowAndStep, ...], Field(max_length=8, strict=False)] = ()
    eos_unused: Annotated[int, Field(ge=0, le=3)] = 0
    forced_eos: bool = False
    against_eos: Literal["nothing", "suppress", "begin suppress", "bad words"] = "nothing"
    pad: TokenId | None = 0
    stop: Annotated[tuple[StopString, ...], Field(max_length=4, strict=False)] = ()
    stop_at: Annotated[tuple[RowAndStep, ...], Field(max_length=4, strict=False)] = ()
    stop_by_keyword: bool = False
    row_stops: Annotated[tuple[RowAndStep, ...], Field(max_length=8, strict=False)] = ()
    max_time: bool = False
    returned: Annotated[int, Field(ge=1, le=3)] = 1
    do_sample: bool = False
    sample_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    repetition_penalty: Annotated[float, Field(gt=0.1, lt=10.0)] = 1.0
    output_attentions: bool = False
    output_hidden_states: bool = False

    @property
    def filler(self) -> int:
        """The token that fills up a finished row: where none is given, `generate` takes the first end token."""
        return self.pad if self.pad is not None else next(iter(self.eos), 0)

    @property
    def copies(self) -> int:
        """How many sequences each row of the prompt becomes; more than one only where they are sampled."""
        return self.returned if self.do_sample else 1
