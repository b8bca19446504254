"""Generation settings: how many tokens, what ends a row, what fills it up, and how tokens are chosen."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.case import Settings
from conformance.strategies.ranges import Span, rarely, whole_numbers


def ends(*, vocabulary: int, many: bool = False) -> st.SearchStrategy[tuple[int, ...]]:
    """No end token half of the time, else so many that tiny vocabularies meet one within a few steps.

    `many` gives eight to sixteen of them always.
    """
    fewest, most = (8, 16) if many else (1, 12)
    some = st.lists(st.integers(1, vocabulary - 1), min_size=fewest, max_size=most, unique=True).map(tuple)
    return some if many else st.just(()) | some


def places(*, rows: int, steps: int) -> st.SearchStrategy[tuple[tuple[int, int], ...]]:
    """End tokens by place, (row, step), that are met because the model says them: none, or one or two."""
    place = st.tuples(st.integers(0, rows - 1), st.integers(0, steps - 1))
    return st.just(()) | st.lists(place, min_size=1, max_size=2, unique=True).map(tuple)


@st.composite
def settings(
    draw: st.DrawFn,
    *,
    vocabulary: int,
    new_tokens: Span = (1, 8),
    sampling: bool = True,
    rows: int = 1,
    attentions: bool = False,
    many_ends: bool = False,
) -> Settings:
    """Settings for a model with this vocabulary; shrinks to one new token, greedy, without an end token.

    `rows` is the number of the prompt's rows; `attentions` allows to ask for attention weights, which only the eager
    kernel has.
    """
    limit = draw(whole_numbers("new_tokens", new_tokens, 1, 64))
    eos = draw(ends(vocabulary=vocabulary, many=many_ends))
    eos_at = () if eos else draw(places(rows=rows, steps=limit))
    do_sample = sampling and draw(rarely(True, False, one_in=6))
    return Settings(
        max_new_tokens=limit,
        eos=eos,
        eos_at=eos_at,
        pad=draw(st.sampled_from((0, eos[0]))) if eos else 0,
        do_sample=do_sample,
        sample_seed=draw(st.integers(0, 2**16)) if do_sample else 0,
        repetition_penalty=draw(rarely(1.5, 1.0, one_in=8)),
        output_attentions=attentions and draw(rarely(True, False, one_in=6)),
        output_hidden_states=draw(rarely(True, False, one_in=6)),
    )
