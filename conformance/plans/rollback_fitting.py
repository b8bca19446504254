"""Which operations of a program do anything where they stand, as plain values; and programs brought to fit a batch.

A stored program with one that does nothing would be judged as another than it says, or as none, and pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.plans.rollback_programs import MOST_ROWS, Op, repeats, segments

PLAIN = Op()
FIELDS = {"feed": "tokens", "crop": "count", "reorder": "rows", "select": "rows", "repeat": "count"}
ON_FILLED = ("feed", "reorder", "select", "repeat", "reset")


def nonsense(program: Sequence[Op], rows: int) -> str | None:
    """The first operation that does nothing on caches for so many rows, and why; None where each does something."""
    number = 0
    for part in segments(program):
        if part and not _says_something(part):
            return f"plan.program.{number}: nothing is ever fed to the cache of {part[0]}, nor is it cropped"
        for at, (op, reason) in enumerate(_told(part, rows)):
            if reason:
                return f"plan.program.{number + at}: {op} is of no effect: {reason}"
        number += len(part) + 1  # with the `fresh` after it
    return None


def fitting(program: Sequence[Op], rows: int) -> tuple[Op, ...]:
    """The program for so many rows: places modulo the batch, and without what would do nothing."""
    parts = [_fitted(part, rows) for part in segments(program)]
    kept = [part for part in parts if _says_something(part)]
    return tuple(op for part in kept for op in (Op(op="fresh"), *part))[1:]


def _says_something(part: Sequence[Op]) -> bool:
    """Whether anything is to be seen of a cache: it is filled, or cropped while it is empty."""
    return any(op.op in ("prefill", "crop") for op in part)


def _fitted(part: Sequence[Op], rows: int) -> list[Op]:
    kept: list[Op] = []
    for op in part:
        batch, filled = _state(kept, rows)
        fitted = op.replace(rows=tuple(row % batch for row in op.rows)) if op.rows else op
        kept += [] if _idle(fitted, batch, filled) else [fitted]
    return kept


def _told(part: Sequence[Op], rows: int) -> Iterator[tuple[Op, str]]:
    for at, op in enumerate(part):
        yield op, _idle(op, *_state(part[:at], rows))


def _state(done: Sequence[Op], rows: int) -> tuple[int, bool]:
    """How many rows the batch has after these operations, and whether the prompt is in the cache."""
    batch, filled = rows, False
    for op in done:
        filled = (filled or op.op == "prefill") and op.op != "reset"
        if op.op == "select":
            batch = len(op.rows)
        elif op.op == "repeat":
            batch *= op.count
    return batch, filled


def _idle(op: Op, batch: int, filled: bool) -> str:
    """Why an operation does nothing on a batch of this size; "" where it does something.

    A crop of more than there is, or of an empty cache, has to be refused or to leave it empty.
    """
    told = {name for name in ("tokens", "count", "rows") if getattr(op, name) != getattr(PLAIN, name)}
    if idle := told - {FIELDS.get(op.op, "")}:
        return f"it takes no {min(idle)}"
    if op.op in ON_FILLED and not filled:
        return "the cache is empty there"
    reasons = {
        "prefill": "the cache is filled already" if filled else "",
        "feed": "" if op.tokens else "it has no tokens",
        "repeat": "" if repeats(op, batch) else f"{op.count} times {batch} is no larger batch of at most {MOST_ROWS}",
    }
    if op.op in ("reorder", "select"):
        beyond = max(op.rows, default=0) >= batch
        reasons[op.op] = f"a batch of {batch} has no row {max(op.rows)}" if beyond else "" if op.rows else "no rows"
    return reasons.get(op.op, "")
