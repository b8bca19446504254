"""The plan of the `stopping` family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Self

from conformance.case import Case, Plan

FILLED = 2  # tokens of the call that fills a cache
OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


class StoppingPlan(Plan, family="stopping"):
    """What the device, the caller and the caller's hooks are like.

    lag: a copy to the host lands at once (0), one step late (1), or not before it is waited for (2).
    cache: made by `generate`, or passed in by the caller, fresh or filled by a call before. static: of fixed size;
    room: for how many tokens more than are needed a static cache that is passed in has a place (None: for as many as
    may be generated). quantised: its layers, where they are plain ones, are moved to a second storage now and then, as
    quantised layers are, here without any loss. words: what a cache
    passed in says of itself: whether it can be put back (as its kind does), that it cannot, or nothing. recording:
    the caller had switched the recording of past states on.
    tensor_only: nothing but the sequences is returned. uncached: `use_cache` off. pad_beyond: the pad id is outside
    the vocabulary. assistant: the loop is that of an assistant.
    processor: a processor of the caller's that depends on how often it was called; stop_after: a criterion of the
    caller's stops after so many calls (0: there is none).
    raises: which hook raises when it is called for the `raises_at`th time (0: once more often than stopping at once
    calls it, which is in the step too many); only the check of errors lets it.
    again: the call is made twice on the same model, and stopped late both times; so is the one after an error.
    polls: how often an event that is asked again and again answers that nothing has arrived yet.
    """

    lag: Annotated[int, Field(ge=0, le=2)] = 0  # as a Literal it would take `true` for 1
    streamed: bool = False
    cache: Literal["made", "fresh", "filled"] = "made"
    static: bool = False
    room: Annotated[int, Field(ge=0, le=8)] | None = None
    quantised: bool = False
    words: Literal["its own", "cannot", "none"] = "its own"
    recording: bool = False
    tensor_only: bool = False
    uncached: bool = False
    pad_beyond: bool = False
    assistant: bool = False
    processor: bool = False
    stop_after: Annotated[int, Field(ge=0, le=8)] = 0
    raises: Literal["", "streamer", "processor", "criterion"] = ""
    raises_at: Annotated[int, Field(ge=0, le=8)] = 1
    again: bool = False
    polls: Annotated[int, Field(ge=1, le=8)] = 1

    @property
    def passed_in(self) -> bool:
        """Whether the caller passes a cache."""
        return self.cache != "made" and not self.uncached

    @property
    def outlives(self) -> bool:
        """Whether a cache is left after the call."""
        return not self.uncached and (self.passed_in or not self.tensor_only)

    def traits(self) -> tuple[str, ...]:
        """The fields that are not at their default; the lag and places of no effect are no needs."""
        dull = {"raises_at", "room", "lag", "polls"}
        return tuple(f"plan {name}" for name in super().traits() if name not in dull)

    @property
    def alike(self) -> Mapping[str, str]:
        """Whatever ends rows before the length does: there is a step too many then."""
        return dict.fromkeys(
            ("eos", "stop", "stop_by_keyword", "row_stops", "plan stop_after"), "an end before the length"
        )

    def plainer(self) -> Iterator[Self]:
        """Each field back at its default, and with it those that say nothing without it."""
        yield from (plan._without_idle() for plan in super().plainer())

    def halves(self) -> Iterator[Self]:
        """Half of the fields back at their defaults, and with them those that say nothing without them."""
        yield from (plan._without_idle() for plan in super().halves())

    def _without_idle(self) -> Self:
        idle = {name for lacking, names in self._idle() for name in names if lacking}
        return self.replace(**{name: getattr(type(self)(), name) for name in idle})

    def _idle(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What is lacking, in words ("" where it is not) → the fields that are of no effect without it."""
        passed = "" if self.cache != "made" else "a cache that the caller passes"
        return (
            (passed, ("room", "quantised", "words", "recording")),
            ("" if self.static else "a static cache", ("room",)),
            ("a cache" if self.uncached else "", ("cache", "static", "room", "quantised", "words", "recording")),
            ("" if self.raises else "a hook that raises", ("raises_at",)),
            ("" if self.lag else "a device that is late", ("polls",)),
        )

    def contradiction(self, case: Case, vocabulary: int) -> str | None:
        """Fields of the plan that nothing reads, places in rows that are not there, end tokens that nothing says."""
        plainest = type(self)()
        for lacking, names in self._idle():
            said = [name for name in names if lacking and getattr(self, name) != getattr(plainest, name)]
            if said:
                return f"plan.{said[0]} is of no effect without {lacking}"
        if self.raises == "streamer" and not self.raises_at:
            return "plan.raises_at is 0, and a streamer is told nothing of the step too many"
        for name in ("eos_at", "stop_at", "row_stops"):
            row = max((row for row, _ in getattr(case.settings, name)), default=0)
            if row >= len(case.prompt.rows):
                return f"settings.{name} tells of row {row}, and the prompt has {len(case.prompt.rows)}"
        if max(case.settings.eos, default=0) >= vocabulary:
            return f"settings.eos holds token {max(case.settings.eos)}, beyond the vocabulary of {vocabulary}"
        return None

    def changes(self, vocabulary: int) -> dict[str, Any]:
        """What the plan changes in the generation config, by field; a static cache apart."""
        found: dict[str, Any] = {}
        if self.tensor_only:
            found |= {"return_dict_in_generate": False, **dict.fromkeys(OUTPUTS, False)}
        found |= {"use_cache": False} if self.uncached else {}
        found |= {"pad_token_id": vocabulary + 3} if self.pad_beyond else {}
        return found | ({"is_assistant": True} if self.assistant else {})

    def forms(self, scenario: Any) -> dict[str, str]:
        """What the caller passes, what is compared of a cache, and how a second call goes on."""
        changed = {"cannot": "prepared_refusing", "none": "prepared_wordless"}.get(self.words, "")
        changed = "prepared_quantised" if self.quantised else "prepared" if self.recording else changed
        passed = "caller_prepared" if changed else "caller_cache"
        return {
            "caller": passed if self.passed_in else "caller",
            "prepared": changed or "prepared",
            "shown": "shown_static" if self.static else "shown",
            "following": "following_encoded" if scenario.encoder_decoder else "following",
        }

    def stands_alone(self) -> bool:
        """Not with hooks that keep state, a cache that was filled before, or one that was changed in two ways."""
        changed = [self.quantised, self.recording, self.words != "its own"]
        return not (self.processor or self.stop_after or self.cache == "filled" or sum(changed) > 1)

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """What can be told before anything ran."""
        found = {f"lag: {('at once', 'one step', 'as late as allowed')[self.lag]}"}
        found |= {"cache: static"} if self.static else set()
        found |= {"cache: outlives the call" if self.outlives else "cache: dies with the call"}
        found |= {"streamer: on"} if self.streamed else set()
        return found | ({f"raises: {self.raises}"} if self.raises else set())
