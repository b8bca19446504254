"""Which operations of a program do anything where they stand, as plain values; and programs brought to fit a batch.

A stored program with one that does nothing would be judged as another than it says, or as none, and pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from conformance.plans.rollback_programs import MOST_ROWS, Op, repeats, segments

PLAIN = Op()
FIELDS = {
    "prefill": "rows",
    "feed": "tokens",
    "crop": "count",
    "reorder": "rows",
    "select": "rows",
    "repeat": "count",
}
ON_FILLED = ("feed", "reorder", "select", "repeat", "reset")


class State(NamedTuple):
    """A cache before an operation. prompt: the rows of the prompt; batch: those of the cache; emptied: by a reset."""

    prompt: int
    batch: int
    filled: bool = False
    emptied: bool = False


def nonsense(program: Sequence[Op], rows: int, *, keeps: bool = False) -> str | None:
    """The first operation that does nothing on caches for so many rows, and why; None where each does something.

    keeps: whether a cache of the class takes no other number of rows after a reset. Where its layers alone know, it may
    have another number here than it then has, of which the operations' rows are taken as well.
    """
    number = 0
    for part in segments(program):
        if part and not _says_something(part):
            return f"plan.program.{number}: nothing is ever fed to the cache of {part[0]}, nor is it cropped"
        for at, op in enumerate(part):
            if reason := _idle(op, _state(part[:at], rows, keeps)):
                return f"plan.program.{number + at}: {op} is of no effect: {reason}"
        number += len(part) + 1  # with the `fresh` after it
    return None


def fitting(program: Sequence[Op], rows: int, *, keeps: bool = False) -> tuple[Op, ...]:
    """The program for so many rows: places modulo the batch, and without what would do nothing."""
    parts = [_fitted(part, rows, keeps) for part in segments(program)]
    kept = [part for part in parts if _says_something(part)]
    return tuple(op for part in kept for op in (Op(op="fresh"), *part))[1:]


def _says_something(part: Sequence[Op]) -> bool:
    """Whether anything is to be seen of a cache: it is filled, or cropped while it is empty."""
    return any(op.op in ("prefill", "crop") for op in part)


def _fitted(part: Sequence[Op], rows: int, keeps: bool) -> list[Op]:
    kept: list[Op] = []
    for op in part:
        state = _state(kept, rows, keeps)
        fitted = op.replace(rows=_in_place(op, state)) if op.rows else op
        kept += [] if _idle(fitted, state) else [fitted]
    return kept


def _in_place(op: Op, state: State) -> tuple[int, ...]:
    """The rows of an operation that there are; a prefill of a new cache tells none, since those are the prompt's."""
    if op.op != "prefill":
        return tuple(row % state.batch for row in op.rows)
    return tuple(row % state.prompt for row in op.rows) if state.emptied else ()


def _state(done: Sequence[Op], rows: int, keeps: bool) -> State:
    state = State(rows, rows)
    for op in done:
        filled = (state.filled or op.op == "prefill") and op.op != "reset"
        batch, emptied = state.batch, state.emptied or op.op == "reset"
        if op.op == "select" or (op.op == "prefill" and op.rows and not keeps):
            batch = len(op.rows)
        elif op.op == "repeat":
            batch *= op.count
        state = State(rows, batch, filled, emptied and not filled)
    return state


def _idle(op: Op, state: State) -> str:
    """Why an operation does nothing on such a cache; "" where it does something.

    A crop of more than there is, or of an empty cache, has to be refused or to leave it empty.
    """
    told = {name for name in ("tokens", "count", "rows") if getattr(op, name) != getattr(PLAIN, name)}
    if idle := told - {FIELDS.get(op.op, "")}:
        return f"it takes no {min(idle)}"
    if op.op in ON_FILLED and not state.filled:
        return "the cache is empty there"
    if op.op == "feed":
        return "" if op.tokens else "it has no tokens"
    if op.op == "repeat":
        many = f"{op.count} times {state.batch} is no larger batch of at most {MOST_ROWS}"
        return "" if repeats(op, state.batch) else many
    if op.op == "prefill":
        return _idle_prefill(op, state)
    if op.op in ("reorder", "select"):
        beyond = max(op.rows, default=0) >= state.batch
        return f"a batch of {state.batch} has no row {max(op.rows)}" if beyond else "" if op.rows else "no rows"
    return ""


def _idle_prefill(op: Op, state: State) -> str:
    if state.filled:
        return "the cache is filled already"
    if op.rows and not state.emptied:
        return "a new cache is for all rows of the prompt"
    return f"the prompt has no row {max(op.rows)}" if max(op.rows, default=0) >= state.prompt else ""
