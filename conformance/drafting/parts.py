"""Which parts of a plan a case allows, and what follows from them for its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from conformance.plans.prefill import PrefillPlan
from conformance.runs import Runs

PARTS = ("limit", "embeds", "turns", "chunk", "draft")  # in the order of the ladder


class Parts:
    """The parts of one case's plan."""

    def __init__(self, runs: Runs, plan: PrefillPlan | None = None) -> None:
        """`plan`: one that stands in the place of the case's own, of another family."""
        self.runs, self.scenario, self.plan = runs, runs.scenario, plan or runs.case.plan
        assert isinstance(self.plan, PrefillPlan)

    def has(self, part: str) -> bool:
        """Whether the plan has this part and the case allows it."""
        if part == "turns":
            return bool(self.turns)
        return {
            "limit": self.beyond > 0,
            "embeds": self.plan.embeds and not self.scenario.media,
            "chunk": self.plan.chunk > 0,
            "draft": self.plan.drafts,
        }[part]

    def up_to(self, part: str) -> tuple[str, ...]:
        """The parts of the plan up to one, in the ladder's order."""
        return tuple(p for p in PARTS[: PARTS.index(part) + 1] if self.has(p))

    @property
    def everything(self) -> tuple[str, ...]:
        """All parts of the plan."""
        return self.up_to("draft")

    @property
    def rows(self) -> list[int]:
        """The prompt rows that run: one where the plan drafts, since several are refused.

        One, too, where the type documents that a padded row is another prompt to it.
        """
        other = self.runs.ignores_padding and self.runs.case.prompt.padded
        return [0] if self.plan.drafts or other else list(self.runs.rows)

    @property
    def turns(self) -> tuple[int, ...]:
        """The positions cached by earlier calls that every row has, and that leave something to continue with.

        Where the plan's `whole` says so nothing is left in the end: the last of them caches the whole prompt. Images
        arrive in one call, all together; those that take no positions are never continued, nor is a prompt that in
        parts is another one.
        """
        media = self.scenario.media
        if self.scenario.encoder_decoder or "whole_prompt" in self.runs.facts or (media and media.token is None):
            return ()
        first, end = self.media_span
        whole = [turn for turn in set(self.plan.turns) if not first < turn < end]
        parts = sorted(turn for turn in whole if self.padding < turn < self.width)
        return (*parts, self.width) if self.plan.whole else tuple(parts)

    @cached_property
    def media_span(self) -> tuple[int, int]:
        """The positions from the first placeholder of these rows to the last, (0, 0) where there is none."""
        token, width = getattr(self.scenario.media, "token", None), self.width
        rows = [self.scenario.rows[row] for row in self.rows]
        places = [at for row in rows for at, its in enumerate(row, width - len(row)) if its == token]
        return (min(places), max(places) + 1) if places else (0, 0)

    def brings_images(self, cached: int, until: int) -> bool:
        """Whether a call that takes the prompt from one position to another brings the images with it."""
        first, end = self.media_span
        return self.scenario.media is not None and (end == 0 or cached <= first < until)

    @property
    def brings_images_itself(self) -> bool:
        """Whether the case's own call brings images, after all earlier turns."""
        return self.brings_images(self.turns[-1] if self.turns else 0, self.width)

    def left_out(self, cached: int, until: int) -> int:
        """How many ids such a call is not given, since the cache holds them.

        A type that derives positions from the ids of its images needs them all where new images come. Where nothing is
        new all are given: there is no call without any.
        """
        media = self.scenario.media
        derives = media is not None and media.recipe.derives_positions and self.brings_images(cached, until)
        return cached if self.plan.only_new and cached < until and not derives else 0

    @property
    def width(self) -> int:
        """The length of the longest of these rows."""
        return max(len(self.scenario.rows[row]) for row in self.rows)

    @property
    def first_iterations(self) -> int:
        """How many preparations of the main model may be told of the first iteration: one a chunk."""
        width = max(self.width - (self.turns[-1] if self.turns else 0), 1)
        return -(-width // self.plan.chunk) if self.has("chunk") and not self.scenario.encoder_decoder else 1

    @property
    def placeholders(self) -> int:
        """How many positions of these rows stand for images or sound; 1 where they have none of their own."""
        media = self.scenario.media
        return sum(self.scenario.rows[row].count(media.token) for row in self.rows) or 1 if media else 1

    @property
    def padding(self) -> int:
        """How many positions of the shortest of these rows are padding."""
        return self.width - min(len(self.scenario.rows[row]) for row in self.rows)

    @cached_property
    def stops(self) -> tuple[int, ...]:
        """The tokens that the custom stop condition waits for."""
        if not self.plan.stop_at:
            return ()
        plain = self.runs.alone[0].tokens(0)
        return tuple(dict.fromkeys(plain[step] for step in self.plan.stop_at if step < len(plain)))

    @property
    def beyond(self) -> int:
        """By how many tokens the caller's own limit is more than the settings say, of which one is left."""
        settings = self.runs.case.settings
        about_the_limit = self.plan.min_new or settings.forced_eos
        return 0 if about_the_limit else min(self.plan.beyond, settings.max_new_tokens - 1)

    @property
    def guidance(self) -> float:
        """The guidance scale; what guides starts from the prompt's last id, which must be the decoder's own."""
        return 1.0 if self.scenario.encoder_decoder or self.plan.embeds else self.plan.guidance

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a row: end tokens, and those of the custom stop condition."""
        return (*self.runs.case.settings.eos, *self.stops)

    @property
    def positions(self) -> bool:
        """Whether the call is given the positions of its ids: of text only, for a decoder that takes any."""
        text = self.scenario.architecture.task == "causal" and not self.scenario.media
        taken = text and not self.scenario.encoder_decoder and self.runs.capabilities.accepts_position_ids
        return self.plan.positions and bool(taken)

    @property
    def bare(self) -> bool:
        """Whether the call has no mask, and none is needed: one that is guessed from pad tokens would be another."""
        rows = [self.scenario.rows[row] for row in self.rows]
        unpadded = len({len(row) for row in rows}) == 1 and not any(self.runs.case.settings.pad in row for row in rows)
        return self.plan.bare and unpadded

    def start(self, parts: Sequence[str]) -> int:
        """How many ids of the prompt `generate` returns before the new ones."""
        if self.scenario.encoder_decoder:
            return 1
        if "embeds" in parts:
            return self.width if self.plan.ids_too else 0
        return self.width - (self.left_out(self.turns[-1], self.width) if "turns" in parts else 0)
