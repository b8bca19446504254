"""Guided runs, and what their scores have to be: two decodings, each row of each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.build import Scenario
from conformance.case import Settings
from conformance.compare import Noise
from conformance.oracle import Oracle
from conformance.outcome import Outcome
from conformance.runs import Runs


class Guided:
    """The runs of a case whose plan guides, and its second decoding recomputed."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.scale = runs, float(runs.case.plan.guidance)
        case = runs.scenario.case
        settings = Settings(max_new_tokens=case.settings.max_new_tokens)
        self._scenario = runs.scenario.of(case.replace(settings=settings, fingerprint=None))
        rows = tuple(self.negatives())
        second = case.replace(prompt=case.prompt.replace(rows=rows), settings=settings, fingerprint=None)
        self._second = Oracle(Scenario(second))

    @property
    def bound(self) -> float:
        """How far scores may be off: each of two decodings counts up to twice."""
        return 4 * self.runs.bound

    def negatives(self) -> list[tuple[int, ...]]:
        """What each row's second decoding begins with: the negative prompt, one token less of it in each further row.

        The last token of the row's own prompt where there is none.
        """
        asked = tuple(self.runs.case.plan.negative)
        if not asked:
            return [row[-1:] for row in self.runs.scenario.rows]
        shorter = 0 if "ignores_padding" in self.runs.facts else len(asked) - 1
        return [asked[min(number, shorter) :] for number in self.runs.rows]

    def run(self, **config: Any) -> Outcome:
        """All rows with guidance, greedily or as `config` says, once."""
        return self._once({"guidance_scale": self.scale, **config}, self._negative_prompts())

    @property
    def copies(self) -> int:
        """How many sequences come of each row where no beams do."""
        return int(self.runs.case.plan.copies)

    def sampled(self) -> dict[str, Any]:
        """The settings with which each row becomes several sequences; none where it stays one, which is greedy."""
        if self.copies == 1:
            return {}
        return {"do_sample": True, "num_return_sequences": self.copies, "top_k": 0, "top_p": 1.0, "temperature": 1.0}

    def plain(self, **config: Any) -> Outcome:
        """The same without."""
        return self._once(config, {})

    def _once(self, config: dict[str, Any], extras: dict[str, Any]) -> Outcome:
        call = self._scenario.call(**config).replace(extras=extras)
        return self.runs.once(("guided", *sorted(map(str, config.items()))), lambda: self.runs.run(call))

    def _negative_prompts(self) -> dict[str, torch.Tensor]:
        """Padded on the left, with a mask; none where the second decoding begins with the prompt's last token."""
        if not self.runs.case.plan.negative:
            return {}
        rows = self.negatives()
        missing = [max(map(len, rows)) - len(row) for row in rows]
        ids = [[0] * count + list(row) for row, count in zip(rows, missing, strict=True)]
        mask = [[0] * count + [1] * len(row) for row, count in zip(rows, missing, strict=True)]
        return {"negative_prompt_ids": torch.tensor(ids), "negative_prompt_attention_mask": torch.tensor(mask)}

    def scores(self, row: int, logits: Sequence[torch.Tensor], tokens: list[int]) -> list[torch.Tensor]:
        """Guided scores of each step, shape (vocabulary,), from the row's own logits under these tokens."""
        given = [step.double().log_softmax(-1) for step in logits]
        without = [step.double().log_softmax(-1) for step in self._second.logits(row, tokens)]
        return [other + self.scale * (own - other) for own, other in zip(given, without, strict=True)]

    def noise(self, row: int, tokens: list[int]) -> Noise:
        """Of both decodings together."""
        own = self.runs.noise(row, tokens)
        return lambda step: 4 * own(step)


def guided(runs: Runs) -> Guided:
    """The guided runs of a case, made once."""
    found: Guided = runs.once("guided runs", lambda: Guided(runs))
    return found
