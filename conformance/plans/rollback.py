"""The plan of the `rollback` family: a cache, and a program of operations on it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Self

from conformance.case import Case, Plan, TokenId
from conformance.plans.beam_search import BeamSearch
from conformance.plans.rollback_fitting import fitting, nonsense
from conformance.plans.rollback_programs import Op, closer, crop_events, reach_of, segments, shorter, unfed, windows_of

MOST_OPS = 64
AHEAD = 2  # tokens beyond the program's: the one that looks ahead, and the one that `generate` never feeds
ALMOST_SHORT = range(5, 8)  # operations of a program of which two at a time are left out: few enough to try all
SHORT = 1  # new tokens of a call that is made after a longer one
CacheChoice = Literal["default", "static", "early", "quantized", "fp8", "plain", "bare", "offloaded"]
RUNS = ("earlier", "beams", "search", "draft", "guidance", "negative", "copies")  # about runs of their own
STATIC = ("static", "early")  # of a fixed size, and of a fixed batch from the first forward or from the beginning on
KINDS_OF_KEYS = ("full", "sliding", "chunked")  # of layers whose keys a layer of full attention can hold as well
MADE = ("quantized", "fp8", "plain", "bare")  # those that the caller makes and gives to `generate`


class RollbackPlan(Plan, family="rollback"):
    """cache: which class; `program`: what is done with it, from empty on.

    slack: room of a static cache beyond what the program needs; `earlier`: how many new tokens more than a short
    static-cache call another had that the same model made before; beams: of the beam search, and `search`: how it is
    done; draft: tokens that a lookup drafts in the assisted run (0: none). guidance: the scale of a run whose scores
    are led away from those of a second decoding (1: none), which begins with `negative` or, where that is empty, with
    the last token of the prompt; of a negative prompt each row after the first has one token less. copies: sequences of
    each row in the guided run, which are sampled where they are several.
    """

    cache: CacheChoice = "default"
    program: Annotated[tuple[Op, ...], Field(max_length=MOST_OPS, strict=False)] = ()
    slack: Annotated[int, Field(ge=0, le=16)] = 0
    earlier: Annotated[int, Field(ge=0, le=48)] = 0
    beams: Annotated[int, Field(ge=1, le=4)] = 1
    search: BeamSearch = BeamSearch()
    draft: Annotated[int, Field(ge=0, le=4)] = 0
    guidance: Annotated[float, Field(ge=1.0, le=2.0)] = 1.0
    negative: Annotated[tuple[TokenId, ...], Field(max_length=6, strict=False)] = ()
    copies: Annotated[int, Field(ge=1, le=3)] = 1

    def tokens(self) -> tuple[int, ...]:
        """Every token that is fed, and those of the beam search."""
        return (*(token for op in self.program for token in op.tokens), *self.search.tokens(), *self.negative)

    def stands_alone(self) -> bool:
        """Not with a cache that the caller makes: a script asks for one by the generation config alone."""
        return self.cache not in MADE

    def within(self, vocabulary: int) -> Self:
        """With every token modulo the vocabulary."""
        wrapped = [op.replace(tokens=tuple(t % vocabulary for t in op.tokens)) for op in self.program]
        negative = tuple(token % vocabulary for token in self.negative)
        return self.replace(program=tuple(wrapped), search=self.search.within(vocabulary), negative=negative)

    def fitting(self, rows: int) -> Self:
        """With a program in which every operation does something."""
        return self.replace(program=fitting(self.program, rows, keeps=self.cache in STATIC))

    def contradiction(self, case: Case, vocabulary: int) -> str | None:  # noqa: ARG002
        """An operation of the program that does nothing where it stands, or a cache that nothing is ever fed to."""
        return nonsense(self.program, len(case.prompt.rows), keeps=self.cache in STATIC)

    @property
    def reach(self) -> int:
        """The most tokens that any cache is fed after the prompt, none taken back."""
        return reach_of(self.program)

    @property
    def room(self) -> int:
        """The new tokens for which a cache is made."""
        return self.reach + self.slack + AHEAD

    def traits(self) -> tuple[str, ...]:
        """The class of cache and the other runs that a failure needs; its operations show in its program."""
        named = [f"cache: {self.cache}"] if self.cache != "default" else []
        return (
            *named,
            *(name for name in RUNS if getattr(self, name) != getattr(PLAIN, name)),
        )

    def halves(self) -> Iterator[Self]:
        """Half of what is not at its default back at it; one cache alone; fewer operations."""
        yield from super().halves()
        caches = segments(self.program)
        yield from (self.replace(program=one) for one in caches if len(caches) > 1)
        if len(self.program) > 4:
            yield from (self.replace(program=less) for less in islice(shorter(self.program), 6))
            # and each operation by itself: whatever is tried afterwards takes as long as the program is
            yield from (
                self.replace(program=self.program[:n] + self.program[n + 1 :]) for n in range(len(self.program))
            )

    def plainer(self) -> Iterator[Self]:
        """Without one part; on one cache alone; without some operations; with less fed, taken back or picked."""
        for name in ("cache", "slack", *RUNS):
            if getattr(self, name) != getattr(PLAIN, name):
                yield self.replace(**{name: getattr(PLAIN, name)})
        if self.cache == "early":
            yield self.replace(cache="static")
        yield from (self.replace(search=search) for search in self.search.plainer())
        caches = segments(self.program)
        if self.program:
            yield self.replace(program=())
        if len(caches) > 1:
            yield from (self.replace(program=one) for one in caches)
        yield from (self.replace(program=less) for less in shorter(self.program))
        for at, op in enumerate(self.program):
            yield self.replace(program=(*self.program[:at], *self.program[at + 1 :]))
            yield self.replace(program=(*self.program[:at], *unfed(self.program[at + 1 :], len(op.tokens))))
            yield from (
                self.replace(program=(*self.program[:at], less, *self.program[at + 1 :])) for less in op.plainer()
            )
        if len(self.program) in ALMOST_SHORT:
            yield from (self.replace(program=less) for less in closer(self.program))

    def events(self, case: Case, config: Any) -> set[str]:
        """The classes of cache and operations, and where each crop ends."""
        found = {f"cache: {self.cache}"} | {f"op: {op.op}" for op in self.program} | self.search.events(self.beams)
        found |= {"scores: guided"} if self.guidance != 1.0 else set()
        found |= {"guided: several sequences"} if self.guidance != 1.0 and self.copies > 1 else set()
        found |= {"reset: told rows"} if any(op.op == "prefill" and op.rows for op in self.program) else set()
        prompt = 1 if config.is_encoder_decoder else max(len(row) for row in case.prompt.rows)
        return found | crop_events(self.program, prompt, windows_of(config))

    def forms(self, scenario: Any) -> dict[str, str]:
        """How a forward is given what it needs."""
        return {"fed": "fed_encoded"} if scenario.encoder_decoder else {}


PLAIN = RollbackPlan()
