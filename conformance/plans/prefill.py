"""The plan of the `prefill` family: who drafts, and how the prompt reaches the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Self

from conformance.case import Case, Plan
from conformance.plans.drafters import SINGULAR, Drafter, idle_fields

TOLD = ("positions", "temperature", "top_k", "top_p", "watermark", "words_again", "beyond")
TUNING = ("noise", "assistant_seed", "script", "most", "ngram", "raises")
# Tokens for the lower rung that feeds several at once: in every vocabulary, and never drawn away.
FED = (3, 1, 2, 5, 4, 2, 1, 3, 5, 2, 4, 1, 3, 2)


class PrefillPlan(Plan, family="prefill"):
    """Drafts of at most `most` tokens; a prompt that arrives in parts.

    turns: how many positions of the prompt each earlier call has left in the cache, which the next continues;
    decoded: how many of them it decoded, one after the other, rather than prefilled.
    script: right or wrong, position by position of a scripted assistant or one that shares states, over and over.
    assistant_own: what the assistant's own generation config says besides. stop_at: steps whose token in plain
    decoding a custom stop condition waits for, or where it can be told so, a stop string. raises: after so many
    calls a user's processor raises, where a check wants an error. static: with turns, the cache that they leave is
    one that the caller made. forced_first: the first token is forced, where the decoder starts with one. ids_too:
    with embeds, the ids are given besides. min_as_length: `min_new` is told as the length of all. whole: the last
    of the earlier calls leaves all of the prompt in the cache, so that nothing is new. positions: the call is given
    those of its ids, where the type takes any. assistant_retyped: the assistant model is of the other dtype.
    temperature: where sampled. streamed: a streamer is given once more. top_k, top_p: where sampled. watermark:
    what is put into the scores, `synthid` by a processor that keeps a state. words_again: another assistant has
    drafted with the same tokenizers before. beyond: a criterion for lengths of the caller's tells the limit, and the
    settings say so many tokens less; beams: of a search with that limit, and nothing else of the plan but its cache.
    chunk 0, guidance 1, temperature 1, top_k 0, top_p 1, ngrams 0 and min_new 0 mean: not asked for.
    """

    drafter: Drafter = "none"
    noise: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    assistant_seed: Annotated[int, Field(ge=0, lt=2**16)] = 1
    script: Annotated[tuple[bool, ...], Field(min_length=1, max_length=8, strict=False)] = (True,)
    most: Annotated[int, Field(ge=1, le=8)] = 3
    argument: bool = False
    schedule: Literal["constant", "heuristic", "heuristic_transient"] = "constant"
    threshold: Annotated[float, Field(ge=0.0, le=0.4)] = 0.0
    assistant_static: bool = False
    assistant_own: Literal["nothing", "least", "most", "penalty"] = "nothing"
    ngram: Annotated[int, Field(ge=1, le=3)] = 2
    exit_layer: Annotated[int, Field(ge=1, le=3)] = 1
    chunk: Annotated[int, Field(ge=0, le=32)] = 0
    turns: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(max_length=3, strict=False)] = ()
    decoded: Annotated[int, Field(ge=0, le=4)] = 0
    made_by: Literal["plain", "chunked", "lookup", "assisted"] = "plain"
    only_new: bool = False
    bare: bool = False
    embeds: bool = False
    ids_too: bool = False
    static: bool = False
    stop_at: Annotated[tuple[Annotated[int, Field(ge=0, lt=64)], ...], Field(max_length=4, strict=False)] = ()
    stop_strings: bool = False
    raises: Annotated[int, Field(ge=0, le=8)] = 0
    ngrams: Annotated[int, Field(ge=0, le=4)] = 0
    min_new: Annotated[int, Field(ge=0, le=8)] = 0
    min_as_length: bool = False
    guidance: Annotated[float, Field(ge=1.0, le=1.5)] = 1.0
    forced_first: bool = False
    whole: bool = False
    positions: bool = False
    assistant_retyped: bool = False
    temperature: Annotated[float, Field(ge=0.5, le=1.5)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=16)] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    watermark: Literal["", "green", "synthid"] = ""
    words_again: bool = False
    streamed: bool = False
    beyond: Annotated[int, Field(ge=0, le=4)] = 0
    beams: Annotated[int, Field(ge=1, le=3)] = 1

    @property
    def continues(self) -> bool:
        """Whether earlier calls leave a cache."""
        return bool(self.turns) or self.whole

    @property
    def drafts(self) -> bool:
        """Whether anything is drafted."""
        return self.drafter != "none"

    @property
    def continuation(self) -> tuple[int, ...]:
        """What the rung below feeds: as many tokens as the widest forward of this plan, twice."""
        return FED[: min(2 * self._width(), len(FED))]

    def sizes(self) -> list[int]:
        """How the rung below groups them."""
        width = min(self._width(), len(FED) // 2)
        return [width] * (len(self.continuation) // width)

    def _width(self) -> int:
        return max(2, self.chunk, self.most + 1 if self.drafts else 0)

    def traits(self) -> tuple[str, ...]:
        """Without the figures that only tune a draft, and what is of no effect beside the rest."""
        idle = idle_fields(self)
        return tuple(name for name in super().traits() if name not in TUNING and name not in idle)

    def halves(self) -> Iterator[Self]:
        """First without all that is of no effect, which is one try."""
        plainest = type(self)()
        bare = self.replace(**{name: getattr(plainest, name) for name in idle_fields(self)})
        if bare != self:
            yield bare
        yield from super().halves()

    def forms(self, scenario: Any) -> dict[str, str]:
        """How the prompt arrives, and what drafts."""
        with_ids = self.ids_too and not scenario.encoder_decoder
        embedded = "arriving_embedded_with_ids" if with_ids else "arriving_embedded"
        arriving = embedded if self.embeds else "arriving_positioned" if self.positions else "arriving"
        if (self.continues or self.bare) and not scenario.encoder_decoder:
            arriving = "arriving_cached"
        helped = {"same": "helped", "other": "helped_other", "shallow": "helped_other"}
        helped |= {"noisy": "helped_noisy", "scripted": "helped_scripted", "early_exit": "helped_alone"}
        several = not self.drafts and len(scenario.rows) > 1
        begun = {"begun": "begun_static"} if self.static else {}
        begun |= {"begun": "begun_assisted"} if self.made_by == "assisted" and not several else {}
        return {
            "arriving": arriving,
            "helped": helped.get(self.drafter, "helped_by_nobody"),
            **(begun if self.continues else {}),
            **({"compared": "compared_row"} if several else {}),
            **({"stops": "stops_by_text"} if self.stop_strings and self.stop_at else {}),
            **({"stops": "stops_by_length"} if self.beyond else {}),
        }

    def stands_alone(self) -> bool:
        """Not where embeddings go on from a cache, or a static cache of the caller's is filled with drafts.

        Nor with positions for embeddings, a watermark, a limit beside stop strings or of beams, or an assistant of
        another dtype or of a kind of its own.
        """
        filled = self.continues and self.static and self.made_by == "assisted"
        embedded = self.embeds and (self.continues or self.bare or self.positions)
        two_ends = self.beyond and ((self.stop_at and self.stop_strings) or self.beams > 1)
        unusual = self.assistant_retyped or self.drafter in SINGULAR or self.watermark
        return not (filled or embedded or unusual or two_ends)

    def rests_on(self, check: str) -> bool:
        """A static cache, a batch, and several tokens onto a filled cache matter only where the plan has them."""
        has = {
            "static-matches-dynamic": self.static or (self.drafts and self.assistant_static),
            "padded-row-matches-alone": not self.drafts,
            "several-tokens-match-one-by-one": self.drafts or self.continues or self.chunk > 0,
        }
        return has.get(check, True)

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """How the prompt arrives and who drafts."""
        longest = max(len(row) for row in case.prompt.rows)
        found = {f"drafter: {self.drafter}"} if self.drafts else set()
        found |= {"chunks: several"} if 0 < self.chunk < longest else set()
        found |= {"chunks: the last one partial"} if 0 < self.chunk < longest and longest % self.chunk else set()
        found |= {"prompt: embeddings"} if self.embeds else set()
        found |= {"prompt: embeddings and ids"} if self.embeds and self.ids_too else set()
        found |= {"cache: static"} if self.static else set()
        found |= {f"told: {name}" for name in TOLD if name in self.traits()}
        found |= {"beams: several"} if self.beyond and self.beams > 1 else set()
        found |= {"drafter: of another dtype"} if self.assistant_retyped else set()
        found |= {"drafts: guided"} if self.drafts and self.guidance != 1.0 else set()
        return found
