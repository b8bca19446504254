"""What programs of operations on a cache mean, as plain values: the operations, what they feed, leave and reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import Field

from conformance.case import Record, TokenId

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size", "attention_chunk_size")
MOST_ROWS = 8
Kind = Literal["prefill", "feed", "record", "crop", "reorder", "select", "repeat", "reset", "fresh"]
Rows = list[list[int]]


class Op(Record):
    """One operation on a cache.

    prefill: the prompt, after a reset those of its `rows` that are told (a batch of any size, see `refilled`); feed:
    `tokens` in one forward; record: activate recording; crop: take `count` tokens back; reorder, select: the batch
    becomes its own `rows` (each modulo the batch); repeat: every row `count` times, next to each other; reset: empty;
    fresh: go on with another new cache of the class. An operation that means nothing where it stands (a prefill of a
    filled cache, a feed of an empty one) does nothing: every program can be run. A case's has none
    (`rollback_fitting`).
    """

    op: Kind = "prefill"
    tokens: Annotated[tuple[TokenId, ...], Field(max_length=8, strict=False)] = ()
    count: Annotated[int, Field(ge=0, le=16)] = 0
    rows: Annotated[tuple[Annotated[int, Field(ge=0, le=7)], ...], Field(max_length=8, strict=False)] = ()

    def __str__(self) -> str:
        arguments = self.tokens or self.rows or ((self.count,) if self.op in ("crop", "repeat") else ())
        return f"{self.op}({', '.join(str(value) for value in arguments)})"

    def plainer(self) -> Iterator[Op]:
        """Less fed, taken back or picked, and the plainest tokens and rows."""
        ones, zeros, least = (1,) * len(self.tokens), (0,) * len(self.rows), 2 if self.op == "repeat" else 1
        parts: tuple[tuple[str, Any], ...] = (
            *(("tokens", tokens) for tokens in (self.tokens[:1], self.tokens[:-1] or self.tokens, ones)),
            *(("count", count) for count in (min(self.count, least), self.count // 2 or self.count)),
            *(("rows", rows) for rows in (() if self.op == "prefill" else zeros, self.rows[:1], zeros)),
        )
        yield from (self.replace(**{name: value}) for name, value in parts if getattr(self, name) != value)


def fed(tokens: Sequence[int], rows: int, vocabulary: int) -> Rows:
    """What a `feed` gives each row of the batch: tokens of its own, none of them 0."""
    return [[1 + (token + row) % (vocabulary - 1) for token in tokens] for row in range(rows)]


def segments(program: Sequence[Op]) -> list[tuple[Op, ...]]:
    """The parts of a program that run on a cache of their own."""
    parts: list[list[Op]] = [[]]
    for op in program:
        if op.op == "fresh":
            parts.append([])
        else:
            parts[-1].append(op)
    return [tuple(part) for part in parts]


def shorter(program: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """The program without a half of its operations, without a quarter, and so on, the last ones first.

    What comes after the operation that shows a failure is not needed, and goes in a few steps.
    """
    size = len(program) // 2
    while size > 1:
        for end in range(len(program), 0, -size):
            yield (*program[: max(end - size, 0)], *program[end:])
        size //= 2


def closer(program: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """The program without two of its operations, or without one and with recording switched on later.

    What no single operation can be spared of may still be shown by fewer: what two crops take back together that was
    recorded before them, one may that was not.
    """
    numbers = range(len(program))
    yield from (tuple(program[n] for n in numbers if n not in two) for two in combinations(numbers, 2))
    for at in (n for n in numbers if program[n].op == "record"):
        for other in (n for n in numbers if n != at):
            left = [program[n] for n in numbers if n not in (at, other)]
            yield from ((*left[:n], program[at], *left[n:]) for n in range(at - (other < at) + 1, len(left) + 1))


def unfed(program: Sequence[Op], count: int) -> tuple[Op, ...]:
    """What follows a forward of `count` tokens that is left out: its first crop takes as many tokens fewer back."""
    at = next((number for number, op in enumerate(program) if op.op == "crop"), len(program))
    crops = [op.replace(count=max(op.count - count, 0)) for op in program[at : at + 1]]
    return (*program[:at], *crops, *program[at + 1 :])


def reach_of(program: Sequence[Op]) -> int:
    """The most tokens that any cache is fed after the prompt, none taken back."""
    return max(sum(len(op.tokens) for op in part) for part in segments(program))


def picked(op: Op, count: int) -> list[int]:
    """The rows of a reorder or a selection within a batch of this size; a reorder keeps the size."""
    rows = [row % count for row in op.rows]
    return (rows + list(range(count)))[:count] if op.op == "reorder" else rows


def refilled(op: Op, prompt: int, batch: int, *, keeps: bool) -> list[int]:
    """The rows of the prompt that a prefill after a reset feeds, where it tells any.

    keeps: whether the cache still holds what it had allocated for this batch, so that it takes no other number of rows.
    """
    rows = [row % prompt for row in op.rows]
    return (rows * batch)[:batch] if keeps else rows


def repeats(op: Op, count: int) -> bool:
    """Whether a repetition makes a batch of this size larger, and not too large."""
    return op.count >= 2 and op.count * count <= MOST_ROWS


def cut(groups: Sequence[Rows], count: int) -> list[Rows]:
    """The groups, of tokens for each row, without their last `count` tokens."""
    kept = list(groups)
    while count > 0 and kept:
        size = len(kept[-1][0])
        if count < size:
            kept[-1] = [row[: size - count] for row in kept[-1]]
        else:
            kept.pop()
        count -= size
    return kept


def windows_of(config: Any) -> list[int]:
    """The window sizes in a model's config."""
    decoder = config.get_text_config(decoder=True)
    sizes = (getattr(decoder, name, None) for name in WINDOWS)
    return [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0]


def crop_events(program: Sequence[Op], prompt: int, windows: Sequence[int]) -> set[str]:
    """Where the crops of a program end: inside a forward, at a boundary of two, on the other side of a window."""
    found, bounds, length = set(), [0], 0
    for op in program:
        if op.op == "prefill" and length == 0:
            bounds, length = [0, prompt], prompt
        elif op.op == "feed" and length > 0 and op.tokens:
            length += len(op.tokens)
            bounds.append(length)
        elif op.op in ("reset", "fresh"):
            bounds, length = [0], 0
        elif op.op == "crop" and length > 0:
            after = max(length - op.count, 0)
            if op.count > 0:
                found.add("crop: at a boundary" if after in bounds else "crop: inside a forward")
            if any(after < window <= length for window in windows):
                found.add("crop: crosses the window")
            found.add("crop: of nothing" if op.count == 0 else "crop: of some")
            bounds, length = [b for b in bounds if b < after] + [after], after
    return found
