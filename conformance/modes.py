"""The runs of a case of the `prefill` family: the plain call with some of the plan's parts, from none to all.

A check asks for its own part and all the lower ones: embeddings, then earlier turns, then chunks, then drafts.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria

from conformance import upstream
from conformance.assistants import assistant
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.limits import time_limit
from conformance.outcome import Crash, Outcome
from conformance.plans.prefill import MODELS, PrefillPlan
from conformance.preparations import Belongings, MediaUse, Preparations
from conformance.runs import Runs

PARTS = ("embeds", "turns", "chunk", "draft")  # in the order of the ladder


class FirstTurnRaised(Crash):
    """The call that makes the cache raises: nothing is continued."""


class EndsWith(StoppingCriteria):
    """A custom stop condition: the last token is one of these."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = torch.tensor(list(tokens))

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Of shape (batch,)."""
        return torch.isin(input_ids[:, -1], self.tokens)


class Forced(LogitsProcessor):
    """Allows one token only: that of `tokens`, shape (batch, length), at the next position."""

    def __init__(self, tokens: torch.Tensor, offset: int = 0) -> None:
        self.tokens, self.offset = tokens, offset

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores of shape (batch, vocabulary)."""
        position = min(input_ids.shape[1] + self.offset, self.tokens.shape[1] - 1)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter(1, self.tokens[: len(scores), position : position + 1], 0.0)


class Raises(LogitsProcessor):
    """A user's processor that raises after some calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores as they are, shape (batch, vocabulary)."""
        self.left -= 1
        if self.left < 0:
            raise InterruptedError("a user's processor")
        return scores


class After(StoppingCriteria):
    """Stops at a length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Of shape (batch,)."""
        return torch.full((len(input_ids),), input_ids.shape[1] >= self.length)


class Modes:
    """The runs of one case with parts of its plan."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.scenario, self.plan = runs, runs.scenario, runs.case.plan
        self.models: dict[tuple[str, ...], Any] = {}  # that a run was made on, for another on the same
        assert isinstance(self.plan, PrefillPlan)

    def has(self, part: str) -> bool:
        """Whether the plan has this part and the case allows it."""
        if part == "turns":
            return bool(self.turns)
        return {
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
        """The prompt rows that run: one where the plan drafts, since several are refused."""
        return [0] if self.plan.drafts else list(self.runs.rows)

    @property
    def turns(self) -> tuple[int, ...]:
        """The positions cached by earlier calls that every row has, and that leave something to continue with."""
        if self.scenario.encoder_decoder or self.scenario.media:
            return ()
        return tuple(sorted({turn for turn in self.plan.turns if turn > self._padding < self._width > turn}))

    @property
    def _width(self) -> int:
        return max(len(self.scenario.rows[row]) for row in self.rows)

    @property
    def _padding(self) -> int:
        return self._width - min(len(self.scenario.rows[row]) for row in self.rows)

    @cached_property
    def stops(self) -> tuple[int, ...]:
        """The tokens that the custom stop condition waits for."""
        if not self.plan.stop_at:
            return ()
        plain = self.runs.alone[0].tokens(0)
        return tuple(dict.fromkeys(plain[step] for step in self.plan.stop_at if step < len(plain)))

    @property
    def guidance(self) -> float:
        """The guidance scale; what guides starts from the prompt's last id, which must be the decoder's own."""
        return 1.0 if self.scenario.encoder_decoder or self.plan.embeds else self.plan.guidance

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a row: end tokens, and those of the custom stop condition."""
        return (*self.runs.case.settings.eos, *self.stops)

    def outcome(self, parts: Sequence[str]) -> Outcome:
        """The run with these parts of the plan, once."""
        return self.runs.once(("mode", *parts), lambda: self.run(parts))

    def run(self, parts: Sequence[str], model: Any = None, **changes: Any) -> Outcome:
        """A run with these parts of the plan, on their model unless one is given; `changes` are of the call."""
        cache = self.cache() if "turns" in parts else None
        if isinstance(cache, Crash):
            return Outcome(crash=cache)
        model = self.models.setdefault(tuple(parts), self.model(parts)) if model is None else model
        call = self.call(parts, model, cache).replace(**changes)
        return self.runs.run(call, model=model, watch=True, probes=(Preparations(), Belongings(), MediaUse()))

    def plain_under(self, outcome: Outcome) -> Outcome:
        """Plain decoding where only the tokens of a drafted outcome are allowed, the prompt given as there."""
        assert outcome.sequences is not None
        parts, sequences = [part for part in self.everything if part != "draft"], outcome.sequences
        settings = {**self.config(parts), "eos_token_id": None, "do_sample": False}
        settings = {name: value for name, value in settings.items() if name != "guidance_scale"}
        forced = (Forced(torch.nn.functional.pad(sequences, (0, 1))),)
        config = self.scenario.generation_config(**settings)
        key = ("plain under", *parts)
        changes = {"processors": forced, "criteria": (After(sequences.shape[1]),), "generation_config": config}
        return self.runs.once(key, lambda: self.run(parts, **changes))

    def model(self, parts: Sequence[str]) -> Any:
        """A new main model; where it is its own assistant it carries an assistant's settings."""
        model = self.scenario.model()
        if "draft" in parts and self.plan.drafter == "early_exit":
            own = model.generation_config
            own.num_assistant_tokens, own.num_assistant_tokens_schedule = self.plan.most, self.plan.schedule
            own.assistant_confidence_threshold = self.plan.threshold
        return model

    def call(self, parts: Sequence[str], model: Any, cache: Any = None) -> Call:
        """The call with these parts; `cache` holds what the earlier turns left."""
        inputs = self._inputs(parts, model)
        extras: dict[str, Any] = {} if cache is None else {upstream.cache_argument(model): cache}
        if "draft" in parts and self.plan.drafter in MODELS:
            extras["assistant_model"] = assistant(self.scenario, self.plan)
        cached = self.turns[-1] if "turns" in parts else 0
        start = {"cached": cached, "only_new": self.plan.only_new and "embeds" not in parts}
        return Call(
            inputs=inputs,
            generation_config=self.scenario.generation_config(**self.config(parts)),
            mechanism="assisted" if "draft" in parts else "prefill",
            criteria=(EndsWith(self.stops),) if self.stops else (),
            extras=extras,
            options={**(start if cached else {}), **self._media(inputs)},
        )

    def _media(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """For the reference: which inputs are no text, and where in the prompt the last of them ends."""
        if self.scenario.media is None:
            return {}
        width, text = self._width, ("input_ids", "attention_mask", self.scenario.media.recipe.types)
        ends = [0]
        for row in self.rows:
            ids = self.scenario.rows[row]
            at = [place for place, token in enumerate(ids, width - len(ids)) if token == self.scenario.media.token]
            ends.append(max(at, default=-1) + 1)
        return {"media": tuple(name for name in inputs if name not in text), "media_end": max(ends)}

    def config(self, parts: Sequence[str]) -> dict[str, Any]:
        """Changes to the case's generation config."""
        plan, asked = self.plan, {"no_repeat_ngram_size": self.plan.ngrams, "min_new_tokens": self.plan.min_new}
        changes: dict[str, Any] = {name: value for name, value in asked.items() if value}
        changes |= {"guidance_scale": self.guidance} if self.guidance != 1.0 else {}
        changes |= upstream.static_cache_settings() if plan.static and "turns" not in parts else {}
        changes |= {"prefill_chunk_size": plan.chunk} if "chunk" in parts else {}
        if "draft" in parts:
            changes |= self._drafting_config()
        return changes

    def _drafting_config(self) -> dict[str, Any]:
        plan = self.plan
        if plan.drafter == "lookup":
            return {"prompt_lookup_num_tokens": plan.most, "max_matching_ngram_size": plan.ngram}
        if plan.drafter == "early_exit":
            return {"assistant_early_exit": plan.exit_layer}  # `num_assistant_tokens` is the model's own config's
        return {"num_assistant_tokens": plan.most} if plan.argument else {}

    def _inputs(self, parts: Sequence[str], model: Any) -> dict[str, Any]:
        inputs: dict[str, Any] = dict(self.scenario.inputs(self.rows))
        if "embeds" in parts:
            inputs = {"inputs_embeds": self.embeddings(model, inputs.pop("input_ids")), **inputs}
        elif "turns" in parts and self.plan.only_new:
            inputs["input_ids"] = inputs["input_ids"][:, self.turns[-1] :]
        if self.bare:
            inputs.pop("attention_mask")
        return inputs

    def embeddings(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        """The embeddings of ids, shape (batch, length, size)."""
        with torch.no_grad():
            found: torch.Tensor = model.get_input_embeddings()(ids).detach()
        return found

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
            return 0
        return self._width - (self.turns[-1] if "turns" in parts and self.plan.only_new else 0)

    def processors(self, parts: Sequence[str]) -> Any:
        """The installed logits processors of the run with these parts, built fresh by `generate` itself."""
        caught: list[Any] = []

        def catch(_: Any, input_ids: torch.Tensor, logits_processor: Any, **__: Any) -> torch.Tensor:
            caught.append(logits_processor)
            return input_ids

        model = self.scenario.model() if self.guidance != 1.0 else self.scenario.pristine
        parts = [part for part in parts if part != "draft"]
        # Older releases keep a static cache that nothing was written to, and cannot use it again.
        plain = {
            name: value for name, value in self.config(parts).items() if name not in upstream.static_cache_settings()
        }
        call = self.call(parts, model).replace(generation_config=self.scenario.generation_config(**plain))
        with torch.no_grad():
            model.generate(**call.arguments(), custom_generate=catch)
        return caught[0]

    @property
    def made(self) -> bool:
        """Whether the first of the earlier turns works, which continues nothing; True where there is none."""
        first = self.runs.once("turns", self._earlier_turns) if self.turns else None
        return not isinstance(first, FirstTurnRaised)

    def cache(self) -> Any:
        """What the earlier turns left, a new copy every time; or the Crash of one of them."""
        found = self.runs.once("turns", self._earlier_turns)
        return found if isinstance(found, Crash) else copy.deepcopy(found)

    def _earlier_turns(self) -> Any:
        cache, before = None, 0
        with torch.no_grad(), MODEL_CODE.running():
            for turn in self.turns:
                try:
                    with time_limit():
                        cache = self._turn(cache, before, turn)
                except Exception as error:  # noqa: BLE001 - whatever a subject raises is its outcome
                    crash = Crash.of(error)
                    return crash if before else FirstTurnRaised(**vars(crash))
                before = turn
        return cache

    def _turn(self, cache: Any, before: int, turn: int) -> Any:
        """One earlier call, after which the cache holds the first `turn` positions of the prompt."""
        model, whole = self.scenario.model(), self.scenario.inputs(self.rows)
        begin, end, changes = self.span(before, turn)
        call = Call(
            inputs={
                "input_ids": whole["input_ids"][:, begin:end],
                "attention_mask": whole["attention_mask"][:, :end],
            },
            generation_config=self.scenario.generation_config(**changes),
            mechanism="assisted" if "prompt_lookup_num_tokens" in changes else "prefill",
            processors=(Forced(whole["input_ids"], begin),),
            extras={} if cache is None else {upstream.cache_argument(model): cache},
            options={"cached": before, "only_new": self.plan.only_new},
        )
        return upstream.cache_of(self.runs.subject.generate(model, call))

    def span(self, before: int, turn: int) -> tuple[int, int, dict[str, Any]]:
        """The ids that an earlier call is given, from and to, and its changes to the case's generation config."""
        decoded = min(self.plan.decoded, turn - before - 1) if turn - before > 1 else 0
        end, begin = turn - decoded, before if self.plan.only_new else 0
        if end <= self._padding:
            end, decoded = turn, 0
        changes = {"max_new_tokens": decoded + 1, "eos_token_id": None, "do_sample": False}
        return begin, end, {**changes, **self._maker(before)}

    def _maker(self, before: int) -> dict[str, Any]:
        """How the first of the earlier turns is made; the later ones are plain, so that they differ in one thing."""
        if before:
            return {}
        if self.plan.made_by == "chunked":
            return {"prefill_chunk_size": 2}
        return {"prompt_lookup_num_tokens": 2} if self.plan.made_by == "lookup" and len(self.rows) == 1 else {}
