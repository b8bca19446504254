"""The plan of the `cached` family."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import Self

from conformance.case import Case, Plan, TokenId


class CachedPlan(Plan, family="cached"):
    """Tokens that are fed after the prompt of the first row, and how many of them in each forward."""

    continuation: Annotated[tuple[TokenId, ...], Field(max_length=32, strict=False)] = ()
    groups: Annotated[tuple[Annotated[int, Field(ge=1, le=32)], ...], Field(max_length=32, strict=False)] = ()

    def tokens(self) -> tuple[int, ...]:
        """The continuation."""
        return self.continuation

    def within(self, vocabulary: int) -> Self:
        """With every token modulo the vocabulary."""
        return self.replace(continuation=tuple(token % vocabulary for token in self.continuation))

    def events(self, case: Case, config: Any) -> set[str]:
        """Several tokens in one forward, and whether such a forward crosses a sliding window."""
        position, found = len(case.prompt.rows[0]), set()
        window = getattr(config.get_text_config(decoder=True), "sliding_window", None)
        for size in self.sizes():
            if size > 1:
                found.add("group: several tokens")
                if isinstance(window, int) and position < window < position + size:
                    found.add("group: crosses the window")
            position += size
        return found

    def traits(self) -> tuple[str, ...]:
        """None: what the continuation shows, decoding shows too where the model says those tokens."""
        return ()

    def constants(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """The continuation, and how many of its tokens go in each forward."""
        return {"TOKENS": repr(list(self.continuation)), "GROUPS": repr(self.sizes())}

    def sizes(self) -> list[int]:
        """Group sizes that cover the continuation exactly: the plan's, cut or completed with the rest."""
        sizes: list[int] = []
        left = len(self.continuation)
        for size in self.groups:
            if left <= 0:
                break
            sizes.append(min(size, left))
            left -= sizes[-1]
        return [*sizes, left] if left > 0 else sizes
