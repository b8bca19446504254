"""The plan of the `rollback` family: a cache, and a program of operations on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Self

from conformance import upstream
from conformance.case import Case, Plan, Record, TokenId

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size", "attention_chunk_size")
MOST_ROWS = 8
Kind = Literal["prefill", "feed", "record", "crop", "reorder", "select", "repeat", "reset"]
CacheChoice = Literal["default", "static", "early", "quantized", "plain", "offloaded"]


class Op(Record):
    """One operation on a cache.

    prefill: the prompt; feed: `tokens` in one forward; record: activate recording; crop: take `count` tokens back;
    reorder, select: the batch becomes its own `rows` (each modulo the batch); repeat: every row `count` times, next
    to each other; reset: empty. An operation that means nothing where it stands (a prefill of a filled cache, a
    feed of an empty one) does nothing, so that every program can be run.
    """

    op: Kind = "prefill"
    tokens: Annotated[tuple[TokenId, ...], Field(max_length=8, strict=False)] = ()
    count: Annotated[int, Field(ge=0, le=16)] = 0
    rows: Annotated[tuple[Annotated[int, Field(ge=0, le=7)], ...], Field(max_length=8, strict=False)] = ()

    def __str__(self) -> str:
        arguments = self.tokens or self.rows or ((self.count,) if self.op in ("crop", "repeat") else ())
        return f"{self.op}({', '.join(str(value) for value in arguments)})"


class RollbackPlan(Plan, family="rollback"):
    """cache: which class; `program`: what is done with it, from empty on.

    slack: room of a static cache beyond what the program needs; `earlier`: new tokens of a static-cache call that
    the same model made before; beams: of the beam search; draft: tokens that a lookup drafts in the assisted run
    (0: none).
    """

    cache: CacheChoice = "default"
    program: Annotated[tuple[Op, ...], Field(max_length=16, strict=False)] = ()
    slack: Annotated[int, Field(ge=0, le=16)] = 0
    earlier: Annotated[int, Field(ge=0, le=48)] = 0
    beams: Annotated[int, Field(ge=1, le=4)] = 1
    draft: Annotated[int, Field(ge=0, le=4)] = 0

    def tokens(self) -> tuple[int, ...]:
        """Every token that is fed."""
        return tuple(token for op in self.program for token in op.tokens)

    def stands_alone(self) -> bool:
        """Not with a cache that the caller makes: a script asks for one by the generation config alone."""
        return self.cache not in ("quantized", "plain")

    def within(self, vocabulary: int) -> Self:
        """With every token modulo the vocabulary."""
        wrapped = [op.replace(tokens=tuple(t % vocabulary for t in op.tokens)) for op in self.program]
        return self.replace(program=tuple(wrapped))

    @property
    def reach(self) -> int:
        """The most tokens that are ever fed after the prompt, none taken back."""
        return sum(len(op.tokens) for op in self.program)

    def traits(self) -> tuple[str, ...]:
        """The class of cache and the other runs that a failure needs; its operations show in its program."""
        named = [f"cache: {self.cache}"] if self.cache != "default" else []
        return (
            *named,
            *(name for name in ("earlier", "beams", "draft") if getattr(self, name) != getattr(PLAIN, name)),
        )

    def plainer(self) -> Iterator[Self]:
        """Without one part; without one operation; with one token fed, or taken back, where there were more."""
        for name in ("cache", "slack", "earlier", "beams", "draft"):
            if getattr(self, name) != getattr(PLAIN, name):
                yield self.replace(**{name: getattr(PLAIN, name)})
        for at, op in enumerate(self.program):
            yield self.replace(program=(*self.program[:at], *self.program[at + 1 :]))
            shorter = {"tokens": op.tokens[:1], "count": min(op.count, 1), "rows": op.rows[:1]}
            if op.replace(**shorter) != op and op.op != "repeat":
                yield self.replace(program=(*self.program[:at], op.replace(**shorter), *self.program[at + 1 :]))

    def events(self, case: Case, config: Any) -> set[str]:
        """The classes of cache and operations, and where each crop ends."""
        found = {f"cache: {self.cache}"} | {f"op: {op.op}" for op in self.program}
        prompt = 1 if config.is_encoder_decoder else max(len(row) for row in case.prompt.rows)
        return found | crop_events(self.program, prompt, windows_of(config))

    def constants(self, scenario: Any) -> dict[str, str]:
        """The program as calls, what it leaves, and the settings of the class of cache and of the other runs."""
        calls, left = as_calls(self.program, len(scenario.case.prompt.rows), scenario.vocabulary)
        beams = {"num_beams": self.beams, "num_return_sequences": self.beams, "length_penalty": 0.0}
        return {
            "CACHE": repr(upstream.static_cache_settings() if self.cache in ("static", "early") else {}),
            "PROGRAM": repr(calls),
            "LEFT": repr(left),
            "BEAMS": repr(beams),
            "DRAFT": repr(self.draft),
        }


PLAIN = RollbackPlan()
Rows = list[list[int]]


def fed(tokens: Sequence[int], rows: int, vocabulary: int) -> Rows:
    """What a `feed` gives each row of the batch: tokens of its own, none of them 0."""
    return [[1 + (token + row) % (vocabulary - 1) for token in tokens] for row in range(rows)]


def as_calls(
    program: Sequence[Op], rows: int, vocabulary: int
) -> tuple[list[tuple[Any, ...]], tuple[list[int], list[Rows], Rows]]:
    """A program as calls of a cache's methods, and what it leaves: rows, what they hold, and one more token for each.

    The last is empty where the cache is: then the prompt is what can be looked at next.
    """
    calls: list[tuple[Any, ...]] = []
    sources, groups, filled = list(range(rows)), list[Rows](), False
    for op in program:
        count = len(sources)
        if op.op == "prefill" and not filled:
            calls.append(("prefill",))
            filled = True
        elif op.op == "feed" and filled and op.tokens:
            groups.append(fed(op.tokens, count, vocabulary))
            calls.append(("feed", groups[-1]))
        elif op.op == "record":
            calls.append((upstream.RECORD,))
        elif op.op == "crop":
            calls.append(("crop", -op.count))
            groups = cut(groups, op.count)
        elif op.op == "reset" and filled:
            calls.append(("reset",))
            sources, groups, filled = sources[1:] + sources[:1], [], False
        elif op.op in ("reorder", "select") and filled and op.rows:
            chosen = picked(op, count)
            calls.append(("reorder_cache" if op.op == "reorder" else "batch_select_indices", chosen))
            sources, groups = [sources[row] for row in chosen], [[group[row] for row in chosen] for group in groups]
        elif op.op == "repeat" and filled and repeats(op, count):
            chosen = [row for row in range(count) for _ in range(op.count)]
            calls.append(("batch_repeat_interleave", op.count))
            sources, groups = [sources[row] for row in chosen], [[group[row] for row in chosen] for group in groups]
    return calls, (sources, groups, [[1]] * len(sources) if filled else [])


def picked(op: Op, count: int) -> list[int]:
    """The rows of a reorder or a selection within a batch of this size; a reorder keeps the size."""
    rows = [row % count for row in op.rows]
    return (rows + list(range(count)))[:count] if op.op == "reorder" else rows


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
        elif op.op == "reset":
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
