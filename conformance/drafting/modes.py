"""The runs of a case of the `prefill` family: the plain call with some of the plan's parts, from none to all.

A check asks for its own part and all the lower ones: embeddings, then earlier turns, then chunks, then drafts.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from conformance import upstream
from conformance.drafting.assistants import assistant
from conformance.drafting.calls import Calls
from conformance.drafting.media_use import MediaUse
from conformance.drafting.preparations import Belongings, Preparations
from conformance.drafting.processors import After, Forced
from conformance.drafting.turns import FirstTurnRaised, earlier_turns
from conformance.outcome import Crash, Outcome
from conformance.runs import Runs
from conformance.weights import fill

STEERS = ("guidance_scale", "watermarking_config", "temperature", "top_k", "top_p")  # not told where tokens are forced


class Modes(Calls):
    """The runs of one case with parts of its plan."""

    def __init__(self, runs: Runs) -> None:
        super().__init__(runs)
        self.models: dict[tuple[str, ...], Any] = {}  # that a run was made on, for another on the same

    def outcome(self, parts: Sequence[str]) -> Outcome:
        """The run with these parts of the plan, once."""
        return self.runs.once(("mode", *parts), lambda: self.run(parts))

    def run(self, parts: Sequence[str], model: Any = None, stream: bool = False, **changes: Any) -> Outcome:
        """A run with these parts of the plan, on their model unless one is given; `changes` are of the call."""
        cache = self.cache() if "turns" in parts else None
        if isinstance(cache, Crash):
            return Outcome(crash=cache)
        if model is None:
            if tuple(parts) not in self.models:
                self.models[tuple(parts)] = self.model(parts)
            model = self.models[tuple(parts)]
        call = self.call(parts, model, cache).replace(**changes)
        if "draft" in parts and self.plan.words_again and self.plan.drafter == "translated":
            self.runs.once("used words", lambda: self._other_assistant(parts))
        probes = (Preparations(), Belongings(), MediaUse())
        with self._layers_ahead() if "draft" in parts and self.ahead else nullcontext():
            return self.runs.run(call, model=model, stream=stream, watch=True, probes=probes)

    def _layers_ahead(self) -> AbstractContextManager[None]:
        """Layers that draft are the model's as drawn for an assistant: by another seed, at the same scale."""
        seed, scale = self.plan.assistant_seed, self.runs.case.model.init_scale
        return upstream.layers_ahead(lambda layers: fill(layers, seed, scale))

    def plain_under(self, outcome: Outcome) -> Outcome:
        """Plain decoding where only the tokens of a drafted outcome are allowed, the prompt given as there."""
        assert outcome.sequences is not None
        parts = [part for part in self.everything if part not in ("limit", "draft")]
        sequences = outcome.sequences
        settings = {**self.config(parts), "eos_token_id": None, "do_sample": False}
        settings = {name: value for name, value in settings.items() if name not in STEERS}
        forced = (Forced(torch.nn.functional.pad(sequences, (0, 1))),)
        config = self.scenario.generation_config(**settings)
        key = ("plain under", *parts)
        changes = {"processors": forced, "criteria": (After(sequences.shape[1]),), "generation_config": config}
        return self.runs.once(key, lambda: self.run(parts, **changes))

    def _other_assistant(self, parts: Sequence[str]) -> Outcome:
        """A run of which the tokenizers are those of the case, and the assistant is not."""
        other = assistant(self.scenario, self.plan.replace(assistant_seed=self.plan.assistant_seed + 2))
        model = self.model(parts)
        call = self.call(parts, model)
        return self.runs.run(call.replace(extras={**call.extras, "assistant_model": other}), model=model)

    @property
    def made(self) -> bool:
        """Whether the first of the earlier turns works, which continues nothing; True where there is none."""
        first = self.runs.once("turns", lambda: earlier_turns(self)) if self.turns else None
        return not isinstance(first, FirstTurnRaised)

    def cache(self) -> Any:
        """What the earlier turns left, a new copy every time; or the Crash of one of them."""
        found = self.runs.once("turns", lambda: earlier_turns(self))
        return found if isinstance(found, Crash) else copy.deepcopy(found)


def modes(runs: Runs) -> Modes:
    """The runs of the case with parts of its plan, made once."""
    found: Modes = runs.once("modes", lambda: Modes(runs))
    return found
