"""The runs of a case of the `sampling` family, and what each token should have been drawn from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch

from conformance.call import Call
from conformance.case import Case
from conformance.compare import ROUNDING_FACTOR
from conformance.drafting.assistants import origin
from conformance.drafting.calls import Calls
from conformance.drafting.preparations import Preparations
from conformance.oracle import Oracle
from conformance.outcome import Outcome
from conformance.reference.drafters import Lookup
from conformance.runs import Runs

PARTS = ("draft",)
SEQUENCES_ONLY = {"return_dict_in_generate": False, "output_scores": False, "output_logits": False}
# A chance is then off by a hundredth at most; for `frequencies.CERTAIN` thousands of those had to add up.
STEADY = 1e-2
Tokens = tuple[int, ...]
T = TypeVar("T")


class Draws:
    """The runs of one case, which differ in their seed only; all that is told of each is in the same order."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.calls = runs, Calls(runs, runs.case.plan.drafting)
        self.start = self.calls.start(PARTS)

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """All runs; where one raised it is the last."""
        found: list[Outcome] = []
        model = call = None
        for seed in seeds(self.runs.case):
            mine = self.runs.shareable_model()
            if call is None or mine is not model:
                model, call = mine, self._call(mine)
            found.append(self.runs.run(call, model=model, seed=seed, probes=(Preparations(),)))
            if found[-1].crash:
                break
        return found

    def _call(self, model: Any) -> Call:
        config = self.runs.scenario.generation_config(**self.calls.config(PARTS), **SEQUENCES_ONLY)
        return self.calls.call(PARTS, model).replace(generation_config=config)

    @cached_property
    def tokens(self) -> list[Tokens]:
        """The new tokens of each run."""
        return [tuple(o.sequences[0, self.start :].tolist()) for o in self.outcomes if o.sequences is not None]

    def _of_each(self, make: Callable[[Tokens], T]) -> list[T]:
        made = {tokens: make(tokens) for tokens in dict.fromkeys(self.tokens)}
        return [made[tokens] for tokens in self.tokens]

    @cached_property
    def chances(self) -> list[torch.Tensor]:
        """What plain sampling draws the tokens of each run from, by the oracle: shape (steps, vocabulary), float64."""
        return self._of_each(lambda tokens: self._chances(self.runs.oracle, tokens))

    @cached_property
    def drafted(self) -> list[torch.Tensor]:
        """What the drafter draws from, or would, after the tokens before each, of the same shape.

        The model's own chances where that needs the model's states: no bet is made on those.
        """
        if self.runs.case.plan.drafter in ("block", "sharing"):
            return self.chances
        if self.runs.case.plan.drafter == "lookup":
            return self._of_each(self._looked_up)
        scenario, noise = origin(self.runs.scenario, self.calls.plan)
        oracle = Oracle(scenario, noise=noise)
        return self._of_each(lambda tokens: self._chances(oracle, tokens))

    def _chances(self, oracle: Oracle, tokens: Tokens) -> torch.Tensor:
        logits = oracle.logits(0, tokens).float()
        scores = [self._processors(self._before(tokens, step), logits[step][None])[0] for step in range(len(tokens))]
        return torch.softmax(torch.stack(scores).double(), dim=-1)

    def _looked_up(self, tokens: Tokens) -> torch.Tensor:
        lookup, rows = Lookup(1, self.runs.case.plan.ngram), []
        for step, own in enumerate(self._chances(self.runs.oracle, tokens)):
            found, _ = lookup.propose(self._before(tokens, step), 1)
            rows.append(torch.nn.functional.one_hot(torch.tensor(found[0]), len(own)).to(own) if found else own)
        return torch.stack(rows)

    @cached_property
    def _processors(self) -> Any:
        return self.calls.processors(PARTS)

    def _before(self, tokens: Tokens, step: int) -> torch.Tensor:
        prompt = self.outcomes[0].sequences
        assert prompt is not None
        return torch.cat([prompt[:, : self.start], torch.tensor([tokens[:step]], dtype=torch.long)], dim=-1)

    @cached_property
    def steady(self) -> list[list[bool]]:
        """Whether rounding cannot move the logits that each token is drawn from by more than `STEADY`."""
        return self._of_each(self._steady)

    def _steady(self, tokens: Tokens) -> list[bool]:
        noise = self.runs.noise(0, tokens)
        return [ROUNDING_FACTOR * noise(step) <= STEADY for step in range(len(tokens))]


def seeds(case: Case) -> list[int]:
    """A seed for each run, with nothing in common whatever the case's own is."""
    states = np.random.SeedSequence(case.settings.sample_seed).generate_state(case.plan.draws)
    return [int(state) for state in states]


def draws(runs: Runs) -> Draws:
    """The runs of the case, made once."""
    found: Draws = runs.once("draws", lambda: Draws(runs))
    return found
