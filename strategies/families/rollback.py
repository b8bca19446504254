"""What the `rollback` family adds to a case: a class of cache and a program of operations on it."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from hypothesis import strategies as st

from conformance.architectures import catalogue
from conformance.architectures.capabilities import capabilities
from conformance.architectures.cells import decoder_only, reachable
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.beam_search import BeamSearch
from conformance.plans.rollback import KINDS_OF_KEYS, MOST_OPS, CacheChoice, RollbackPlan
from conformance.plans.rollback_fitting import fitting
from conformance.plans.rollback_programs import Op
from conformance.strategies.beam_searches import beam_searches
from conformance.strategies.cases import vocabulary_of
from conformance.strategies.ranges import rarely

LONGEST = 5  # draws of one operation or of a whole round trip, on one cache
OWN_LAYERS = "own:"  # how the kind of a layer begins whose class is in a model's own file
BEFORE = ("", "", "", "record", "record")  # what is done with an empty cache


def settings(**_: Any) -> st.SearchStrategy[Settings]:
    """How many tokens beams and assistants decode. What else ends or steers a row would not be about the cache."""
    return st.builds(Settings, max_new_tokens=st.integers(1, 8))


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> RollbackPlan:
    """Up to four caches, each with a prefill and some operations or round trips; shrinks to the prefill of one."""
    beams = draw(st.sampled_from((1, 1, 1, 2, 1, 1, 3, 1)))
    plan = RollbackPlan(
        cache=draw(caches(model)),
        program=draw(programs(vocabulary=vocabulary_of(model), rows=len(prompt.rows))),
        slack=draw(st.sampled_from((0, 1, 4, 12))),
        earlier=draw(rarely(32, 0, one_in=3)),
        beams=beams,
        search=draw(beam_searches(vocabulary=vocabulary_of(model), least_pad=0)) if beams > 1 else BeamSearch(),
        draft=draw(st.sampled_from((0, 0, 2, 0, 0, 4))) if beams == 1 else 0,
        **(draw(_guidance(vocabulary_of(model))) if decoder_only(model.architecture) else {}),
    )
    return plan.fitting(len(prompt.rows))  # a static cache keeps its batch when it is reset


@st.composite
def _guidance(draw: st.DrawFn, vocabulary: int) -> dict[str, Any]:
    """Once in six draws a scale, half of those with a negative prompt, a third with several sequences of a row."""
    if not draw(rarely(True, False, one_in=6)):
        return {}
    negative = st.lists(st.integers(1, vocabulary - 1), min_size=1, max_size=5).map(tuple)
    return {
        "guidance": draw(st.sampled_from((1.5, 2.0))),
        "negative": draw(st.just(()) | negative),
        "copies": draw(rarely(2, 1, one_in=3)),
    }


def caches(model: ModelSpec) -> st.SearchStrategy[CacheChoice]:
    """The class of cache: the one that `generate` makes most of the time, else one that this kind of model takes."""
    weighted = [choice for choice, share in _shares(model.architecture) for _ in range(share)]
    return rarely(True, False, one_in=40).flatmap(lambda rare: st.sampled_from(["offloaded"] if rare else weighted))


@cache
def _shares(architecture: str) -> tuple[tuple[CacheChoice, int], ...]:
    own_class = not capabilities(architecture).default_cache
    if own_class:
        return (("default", 1),)
    shares: list[tuple[CacheChoice, int]] = [("default", 12), ("static", 4), ("early", 2)]
    if all(kind.startswith(OWN_LAYERS) for kind in reachable(architecture)):
        return (("default", 16), ("static", 1))  # no static layer stands for a class of the model's own
    kinds = set(reachable(architecture))
    if catalogue.get(architecture).task == "seq2seq":
        shares.append(("plain", 2))
    elif "full" in kinds:
        shares += [("quantized", 2), ("fp8", 1)]
    if kinds <= {*KINDS_OF_KEYS, "shared"}:
        shares.append(("bare", 1))
    return tuple(shares)


@st.composite
def programs(draw: st.DrawFn, *, vocabulary: int, rows: int) -> tuple[Op, ...]:
    """A program for a batch of this many rows, on up to four caches, one after the other.

    An empty cache is cropped at the end only: where that breaks, as it does for most layers of some releases, what the
    other caches show is told first.
    """
    parts = draw(st.lists(_on_one_cache(vocabulary, rows), min_size=1, max_size=4))
    if draw(rarely(True, False, one_in=5)):
        first = [Op(op="record")] if draw(st.sampled_from(BEFORE)) else []
        parts.append([*first, *draw(_crops()), Op(op="prefill"), Op(op="feed", tokens=(1,))])
    return fitting(tuple(op for part in parts for op in (Op(op="fresh"), *part))[1 : MOST_OPS + 1], rows)


@st.composite
def _on_one_cache(draw: st.DrawFn, vocabulary: int, rows: int) -> list[Op]:
    before = draw(st.sampled_from(BEFORE))
    program = [*([Op(op="record")] if before else []), Op(op="prefill")]
    parts = _parts(vocabulary, rows)
    for _ in range(draw(st.integers(0, LONGEST))):
        program += draw(parts)
    return program if draw(rarely(True, False, one_in=4)) else _going_on(program)


def _going_on(program: list[Op]) -> list[Op]:
    """Without crops of more than there is, but for the last operation: nothing after such a crop can be judged."""
    fed = 0
    kept: list[Op] = []
    for op in program[:-1]:
        if op.op == "crop":
            op = op.replace(count=min(op.count, fed))
            fed -= op.count
        fed = 0 if op.op == "reset" else fed + len(op.tokens)
        kept.append(op)
    return [*kept, *program[-1:]]


@lru_cache
def _parts(vocabulary: int, rows: int) -> st.SearchStrategy[list[Op]]:
    trips = _round_trips(vocabulary)
    moved = _round_trips(vocabulary, rows)
    return st.one_of(_feeds(vocabulary), _crops(), trips, trips, moved, _others(rows))


def _feeds(vocabulary: int) -> st.SearchStrategy[list[Op]]:
    tokens = st.lists(st.integers(1, vocabulary - 1), min_size=1, max_size=4)
    return tokens.map(lambda drawn: [Op(op="feed", tokens=tuple(drawn))])


def _crops() -> st.SearchStrategy[list[Op]]:
    few, many = st.integers(0, 6), st.integers(7, 16)
    return st.one_of(few, few, many).map(lambda count: [Op(op="crop", count=count)])


@st.composite
def _round_trips(draw: st.DrawFn, vocabulary: int, rows: int = 0) -> list[Op]:
    """Recording, one or two forwards, and a crop of none of it, some of it, all of it or two more.

    rows: with rows moved before the crop, of a batch of so many, so that what was recorded has to move, too (0: not).
    """
    feeds = draw(_feeds(vocabulary)) + (draw(_feeds(vocabulary)) if draw(st.booleans()) else [])
    fed = sum(len(op.tokens) for op in feeds)
    moves = draw(_moves(rows)) if rows else []
    return [Op(op="record"), *feeds, *moves, Op(op="crop", count=draw(st.integers(0, fed + 2)))]


def _moves(rows: int) -> st.SearchStrategy[list[Op]]:
    """A selection of up to one row more than there are, an order, or a repetition."""
    row = st.integers(0, max(rows - 1, 1))
    order, chosen = (st.lists(row, min_size=1, max_size=most).map(tuple) for most in (rows, rows + 1))
    return st.one_of(
        chosen.map(lambda drawn: [Op(op="select", rows=drawn)]),
        order.map(lambda drawn: [Op(op="reorder", rows=drawn)]),
        st.just([Op(op="repeat", count=2)]),
    )


def _others(rows: int) -> st.SearchStrategy[list[Op]]:
    moves = _moves(rows)
    return st.one_of(moves, moves, moves, _resets(rows))


def _resets(rows: int) -> st.SearchStrategy[list[Op]]:
    """Half of them followed by as many rows as before, half by a batch of up to one row more than the prompt has."""
    others = st.lists(st.integers(0, max(rows - 1, 1)), max_size=rows + 1).map(tuple)
    return st.one_of(st.just(()), others).map(lambda drawn: [Op(op="reset"), Op(op="prefill", rows=drawn)])
