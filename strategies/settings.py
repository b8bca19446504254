"""Generation settings: how many tokens, what ends a row, what fills it up, and how tokens are chosen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hypothesis import strategies as st

from conformance.case import Settings
from conformance.strategies.endings import criteria, ends, limits
from conformance.strategies.ranges import Span, rarely, whole_numbers


@st.composite
def settings(
    draw: st.DrawFn,
    *,
    vocabulary: int,
    new_tokens: Span = (1, 8),
    sampling: bool = True,
    rows: int = 1,
    attentions: bool = False,
    towards: Collection[str] = (),
    by_tokens: bool = False,
) -> Settings:
    """Settings for a model with this vocabulary; shrinks to one new token, greedy, without an end token.

    `rows` is the number of the prompt's rows; `attentions` allows to ask for attention weights, which only the eager
    kernel has; `towards` names events to lean to; `by_tokens` leaves out every other
    way to end a row than end tokens and `max_new_tokens`, for families with stop conditions of their own.
    """
    steps = draw(whole_numbers("new_tokens", new_tokens, 1, 64))
    fields = {"max_new_tokens": steps} if by_tokens else draw(limits(steps))
    fields |= draw(ends(vocabulary=vocabulary, rows=rows, steps=steps, towards=frozenset(towards)))
    fields |= {} if by_tokens else draw(criteria(rows=rows, steps=steps))
    do_sample = sampling and draw(rarely(True, False, one_in=6))
    return Settings(
        **fields,
        **({} if by_tokens else draw(for_and_against(fields))),
        pad=draw(_pads(fields, vocabulary, alone=rows == 1 and not do_sample and not by_tokens)),
        do_sample=do_sample,
        sample_seed=draw(st.integers(0, 2**16)) if do_sample else 0,
        returned=draw(rarely(2, 1, one_in=3)) if do_sample and not by_tokens else 1,
        repetition_penalty=draw(rarely(1.5, 1.0, one_in=8)),
        output_attentions=attentions and draw(rarely(True, False, one_in=6)),
        output_hidden_states=draw(rarely(True, False, one_in=6)),
    )


def _ends_by_token(fields: Mapping[str, Any]) -> bool:
    return any(fields.get(name) for name in ("eos", "eos_at", "eos_unused"))


@st.composite
def for_and_against(draw: st.DrawFn, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Settings`: now and then, an end token of the others forced at the limit, or forbidden."""
    if not _ends_by_token(fields):
        return {}
    against = draw(st.sampled_from(("nothing",) * 20 + ("suppress", "begin suppress", "bad words")))
    return {"forced_eos": draw(rarely(True, False, one_in=12)), "against_eos": against}


def _pads(fields: dict[str, Any], vocabulary: int, alone: bool) -> st.SearchStrategy[int | None]:
    """Zero, or with end tokens: none given, equal to one of them; beyond the vocabulary where no row is filled up."""
    if not _ends_by_token(fields):
        return st.just(0)
    pads: list[int | None] = [0, 0, 0, None]
    pads += list(fields.get("eos", ()))[:1] or [None]
    return st.sampled_from([*pads, vocabulary + 5] if alone else pads)
