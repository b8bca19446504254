"""The plan of the `cached` family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import Self

from conformance.case import Case, Plan, TokenId
from conformance.plans.beam_search import BeamSearch
from conformance.plans.steering import Steering


class CachedPlan(Plan, family="cached"):
    """Tokens that are fed after the prompt of the first row, and how many of them in each forward; a beam search.

    steering: of the scores of one more run of the case's call, which has no other. room: places of the static cache
    beyond those that the call fills, as an earlier call on the model asked for so many more.
    """

    continuation: Annotated[tuple[TokenId, ...], Field(max_length=32, strict=False)] = ()
    groups: Annotated[tuple[Annotated[int, Field(ge=1, le=32)], ...], Field(max_length=32, strict=False)] = ()
    bfloat16: bool = False
    beams: Annotated[int, Field(ge=1, le=4)] = 1
    search: BeamSearch = BeamSearch()
    steering: Steering = Steering()
    room: Annotated[int, Field(ge=0, le=16)] = 0

    def tokens(self) -> tuple[int, ...]:
        """The continuation, and those of the beam search and of what steers."""
        return (*self.continuation, *self.search.tokens(), *self.steering.tokens())

    def within(self, vocabulary: int) -> Self:
        """With every token modulo the vocabulary."""
        wrapped = tuple(token % vocabulary for token in self.continuation)
        parts = {"search": self.search.within(vocabulary), "steering": self.steering.within(vocabulary)}
        return self.replace(continuation=wrapped, **parts)

    def fitting(self, rows: int) -> Self:  # noqa: ARG002
        """With groups that feed no more than the continuation has."""
        return self.replace(groups=tuple(self.sizes()) if self.groups else ())

    def contradiction(self, case: Case, vocabulary: int) -> str | None:  # noqa: ARG002
        """Groups of more tokens than are fed."""
        if sum(self.groups) <= len(self.continuation):
            return None
        return f"plan.groups are of {sum(self.groups)} tokens, and plan.continuation has {len(self.continuation)}"

    def plainer(self) -> Iterator[Self]:
        """With one part at its default, and with one part of the search or of what steers."""
        yield from super().plainer()
        yield from (self.replace(search=search) for search in self.search.plainer())
        yield from (self.replace(steering=steering) for steering in self.steering.plainer())

    def events(self, case: Case, config: Any) -> set[str]:
        """Several tokens in one forward, whether such a forward crosses a sliding window, and what beams meet."""
        position, found = len(case.prompt.rows[0]), self.search.events(self.beams)
        found |= {"dtype: bfloat16"} if self.bfloat16 else set()
        found |= {"scores: steered"} if self.steering.told() else set()
        found |= {"static: with room"} if self.room else set()
        window = getattr(config.get_text_config(decoder=True), "sliding_window", None)
        for size in self.sizes():
            if size > 1:
                found.add("group: several tokens")
                if isinstance(window, int) and position < window < position + size:
                    found.add("group: crosses the window")
            position += size
        return found

    def traits(self) -> tuple[str, ...]:
        """The search and what steers; what the continuation shows, decoding shows too where the model says so."""
        found = tuple(
            name for name in ("bfloat16", "beams", "search", "room") if getattr(self, name) != getattr(PLAIN, name)
        )
        return found + tuple(
            f"steering: {name}" for name in self.steering.told() if name not in ("weight", "decay_after")
        )

    def constants(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """The continuation, and how many of its tokens go in each forward."""
        return {"TOKENS": repr(list(self.continuation)), "GROUPS": repr(self.sizes()), "ROOM": repr(self.room)}

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """Where an earlier call asked for more room, scripts make it."""
        return {"ready": "ready_with_room"} if self.room else {}

    def sizes(self) -> list[int]:
        """Group sizes that cover the continuation exactly: the plan's, completed with the rest."""
        sizes: list[int] = []
        left = len(self.continuation)
        for size in self.groups:
            if left <= 0:
                break
            sizes.append(min(size, left))
            left -= sizes[-1]
        return [*sizes, left] if left > 0 else sizes


PLAIN = CachedPlan()
