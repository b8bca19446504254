"""How beams are searched: a plan's own settings of the search."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.plans.beam_search import BeamSearch
from conformance.strategies.ranges import rarely

PENALTIES = (0.0, 0.0, 1.0, -1.0, 0.5, 2.0)  # how the length of a sequence weighs
STOPPING = (False, False, True, "never")


@st.composite
def beam_searches(draw: st.DrawFn, *, vocabulary: int, least_pad: int = 1, chunks: bool = False) -> BeamSearch:
    """A search; shrinks to the plainest.

    least_pad: the lowest id that finished sequences may be filled up with; chunks: whether the prompt may be read in
    several forwards.
    """
    token = st.integers(1, vocabulary - 1)
    return BeamSearch(
        sampled=draw(rarely(True, False, one_in=3)),
        returned=draw(st.sampled_from((4, 4, 1, 2))),
        length_penalty=draw(st.sampled_from(PENALTIES)),
        early_stopping=draw(st.sampled_from(STOPPING)),
        eos=tuple(draw(st.lists(token, max_size=3))),
        pad=draw(st.integers(least_pad, 3)),
        chunk=draw(rarely(2, 0, one_in=4)) if chunks else 0,
    )
