"""What steers the scores of a decoding: one to three of the processors that `generate` knows."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.plans.steering import Steering
from conformance.strategies.ranges import rarely

PENALTIES = (1.5, 0.7, 1.2)
LEFT_OVER = 8  # tokens that are never forbidden together


@st.composite
def steerings(
    draw: st.DrawFn, *, vocabulary: int, length: int, sampled: bool = False, encoder: bool = False
) -> Steering:
    """A steering of a prompt whose first row has this length; shrinks to a repetition penalty.

    `sampled` adds what only sampling knows, `encoder` that the encoder's output may be given.
    """
    kinds = _kinds(vocabulary, length) | (_warpers() if sampled else {})
    most = draw(st.sampled_from((1, 1, 1, 2, 3)))
    names = st.sampled_from(sorted(kinds, key=_plainest_first))
    chosen = draw(st.lists(names, min_size=1, max_size=most, unique=True))
    fields: dict[str, Any] = {}
    for name in chosen:
        fields |= draw(kinds[name])
    return Steering(**fields, encoded=encoder and draw(rarely(True, False, one_in=4)))


def _plainest_first(name: str) -> tuple[bool, str]:
    return name != "repetition", name


def _kinds(vocabulary: int, length: int) -> dict[str, st.SearchStrategy[dict[str, Any]]]:
    token = st.integers(0, vocabulary - 1)
    some = st.lists(token, min_size=1, max_size=min(4, max(1, vocabulary - LEFT_OVER)), unique=True).map(tuple)
    # Many words end where the prompt ends, so that they matter at the first step; some are all of it.
    word = st.tuples(st.sampled_from(sorted({0, 1, 2, length})).filter(lambda back: back <= length), token)
    several = st.lists(word, min_size=1, max_size=3, unique=True).map(tuple)
    ends = st.lists(token, min_size=1, max_size=3, unique=True).map(tuple)
    size, penalty = st.integers(1, 3), st.sampled_from(PENALTIES)
    return {
        "repetition": st.fixed_dictionaries({"repetition": penalty}),
        "encoder_repetition": st.fixed_dictionaries({"encoder_repetition": penalty}),
        "ngrams": st.fixed_dictionaries({"ngrams": size}),
        "encoder_ngrams": st.fixed_dictionaries({"encoder_ngrams": size}),
        "bias": st.fixed_dictionaries({"bias": several, "weight": st.sampled_from((4.0, -4.0))}),
        "bad_words": st.fixed_dictionaries({"bad_words": several}),
        "allowed": st.fixed_dictionaries({"allowed": st.lists(token, min_size=2, max_size=6, unique=True).map(tuple)}),
        "ends": st.fixed_dictionaries(
            {
                "eos": ends,
                "min_new": st.integers(0, 4),
                "decay_after": st.integers(0, 2),
                "decay": st.sampled_from((0.0, 1.1, 2.0)),
            }
        ),
        "suppress": st.fixed_dictionaries({"suppress": some}),
        "suppress_first": st.fixed_dictionaries({"suppress_first": some}),
        "renormalize": st.just({"renormalize": True}),
        "watermark": st.just({"watermark": True}),
    }


def _warpers() -> dict[str, st.SearchStrategy[dict[str, Any]]]:
    return {
        "temperature": st.fixed_dictionaries({"temperature": st.sampled_from((0.7, 1.5))}),
        "top_k": st.fixed_dictionaries({"top_k": st.integers(1, 8)}),
        "top_p": st.fixed_dictionaries({"top_p": st.sampled_from((0.9, 0.5))}),
        "min_p": st.fixed_dictionaries({"min_p": st.sampled_from((0.05, 0.3))}),
        "top_h": st.fixed_dictionaries({"top_h": st.sampled_from((0.6, 0.3))}),
        "typical_p": st.fixed_dictionaries({"typical_p": st.sampled_from((0.9, 0.4))}),
        "epsilon_cutoff": st.fixed_dictionaries({"epsilon_cutoff": st.sampled_from((0.02, 0.2))}),
        "eta_cutoff": st.fixed_dictionaries({"eta_cutoff": st.sampled_from((0.02, 0.5))}),
    }
