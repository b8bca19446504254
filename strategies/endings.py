"""How rows are to end: relative to what the model says, since an end token drawn blindly is almost never met."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias, get_args

from hypothesis import strategies as st

from conformance.strategies.ranges import rarely

# What is to happen; the first is what a draw shrinks to. `blind` end tokens may or may not be met.
Ways: TypeAlias = Literal["nothing", "middle", "first", "last", "never", "blind", "every row"]
WEIGHTS: dict[Ways, int] = {"nothing": 3, "middle": 16, "last": 6, "first": 1, "every row": 2, "never": 3, "blind": 1}
MOST = 16  # end tokens
LIMITS = st.sampled_from(("max_new_tokens",) * 35 + ("max_length", "both") * 4 + ("neither",))
CRITERIA = st.sampled_from(("none",) * 5 + ("rows", "strings"))
Places = tuple[tuple[int, int], ...]


@cache
def ways(steps: int, towards: frozenset[str] = frozenset()) -> st.SearchStrategy[Ways]:
    """One of the ways that so many steps allow; `towards` names the events that a run has not reached."""
    wanted = [way for way in get_args(Ways) if f"stop: eos {way}" in towards]
    weights = {way: WEIGHTS[way] for way in wanted} or WEIGHTS
    possible = [way for way, weight in weights.items() for _ in range(weight) if way != "middle" or steps > 2]
    return st.sampled_from(possible or ["nothing"])


@st.composite
def ends(draw: st.DrawFn, *, vocabulary: int, rows: int, steps: int, towards: frozenset[str] = frozenset()) -> Any:
    """The fields of `Settings` that say which tokens end a row, by place (row, step) or as ids."""
    way = draw(ways(steps, towards))
    if way == "nothing":
        return {}
    if way == "blind":
        token = st.integers(1, vocabulary - 1)
        return {"eos": tuple(draw(st.lists(token, min_size=1, max_size=MOST - 4, unique=True)))}
    if way == "never":
        return {"eos_unused": draw(st.integers(1, 2))}
    return {"eos_at": draw(_places(way, rows, steps)), "eos_unused": draw(rarely(1, 0, one_in=6))}


def _places(way: Ways, rows: int, steps: int) -> st.SearchStrategy[Places]:
    row = st.integers(0, rows - 1)
    if way == "every row":
        return st.integers(0, steps - 1).map(lambda step: tuple((row, step) for row in range(rows)))
    step = {"first": st.just(0), "last": st.just(steps - 1)}.get(way, st.integers(1, max(1, steps - 2)))
    most = 2 if way == "middle" else 1
    return st.lists(st.tuples(row, step), min_size=1, max_size=most, unique=True).map(tuple)


@st.composite
def criteria(draw: st.DrawFn, *, rows: int, steps: int) -> dict[str, Any]:
    """Now and then, what ends a row beside an end token: a criterion of the caller's for some rows, or stop strings."""
    kind = draw(CRITERIA)
    place = st.tuples(st.integers(0, rows - 1), st.integers(0, steps - 1))
    if kind == "none":
        return {}
    places = tuple(draw(st.lists(place, min_size=1, max_size=2, unique=True)))
    return {"row_stops": places} if kind == "rows" else {"stop_at": places, "stop_by_keyword": draw(st.booleans())}


@st.composite
def limits(draw: st.DrawFn, steps: int) -> dict[str, Any]:
    """How the limit is told, and least numbers of tokens; mostly the limit alone, as `max_new_tokens`.

    No limit at all means 20 tokens, several times the cost of another case: rare.
    """
    how = draw(LIMITS)
    fields: dict[str, Any] = {"max_new_tokens": steps, "limit": how}
    if how == "neither":
        fields["max_new_tokens"] = 20
    if draw(rarely(True, False, one_in=8)):
        fields |= {"min_new_tokens": draw(st.integers(1, steps)), "min_as_length": draw(st.booleans())}
    return fields | ({"max_time": True} if draw(rarely(True, False, one_in=12)) else {})
