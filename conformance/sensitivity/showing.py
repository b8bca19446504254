"""One case: plant each fault, decode one token more, look whether the logits differ."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from conformance import upstream
from conformance.architectures.cells import kinds
from conformance.build import Scenario
from conformance.compare import BOUND
from conformance.sensitivity.cells import FAULTS
from conformance.sensitivity.planting import Plant, nothing, planter, shift

DECODED = 3  # tokens before a fault in a decoder whose prompt is a single start token, the same in every row
Seen = dict[tuple[str, str], bool]  # (cache kind, fault) → whether it changed the logits
Absent = dict[tuple[str, str], str]  # (cache kind, fault) → why it cannot be planted


def one_case(scenario: Scenario, wanted: Iterable[str], seed: int) -> tuple[Seen, Absent]:
    """Each fault planted in each wanted kind of the case's cache: whether it showed, or why it cannot be planted."""
    found: Seen = {}
    absent: Absent = {}
    random = np.random.default_rng(seed + scenario.case.model.weight_seed)

    def decode(model: Any, input_ids: torch.Tensor, generation_config: Any, **kwargs: Any) -> torch.Tensor:
        step = _prepared(model, input_ids, generation_config, kwargs, torch.tensor(scenario.rows))
        right = step.logits(nothing)
        assert isinstance(right, torch.Tensor)
        bound = BOUND * float(right[right.isfinite()].abs().max())
        for kind, fault in product(sorted(set(kinds(scenario.config)) & set(wanted)), FAULTS):
            moved = fault == "position shifted"
            got = step.logits(nothing if moved else planter(kind, fault, random), moved)
            if isinstance(got, str):
                absent[kind, fault] = got
            else:
                found[kind, fault] = bool((got - right).abs().nan_to_num(0.0).max() > bound)
        return input_ids

    with torch.no_grad():
        config = scenario.generation_config()
        scenario.model().generate(**scenario.inputs(), generation_config=config, custom_generate=decode)
    return found, absent


@dataclass
class _Step:
    """A decoding that is about to make its next step, as often as one likes."""

    model: Any
    tokens: torch.Tensor
    kwargs: dict[str, Any]

    def logits(self, plant: Plant, moved: bool = False) -> torch.Tensor | str:
        """The next logits, (rows, vocabulary), after a change to a copy of the cache; or why it cannot be made."""
        ours = copy.deepcopy(self.kwargs)
        reason = plant(ours.get(upstream.cache_name(ours) or ""))
        if reason:
            return reason
        inputs = upstream.next_inputs(self.model, self.tokens, ours, 1)
        reason = shift(inputs) if moved else ""
        if reason:
            return reason
        logits: torch.Tensor = self.model(**inputs, return_dict=True).logits
        return logits[:, -1].double()


def _prepared(
    model: Any, tokens: torch.Tensor, generation_config: Any, kwargs: dict[str, Any], more: torch.Tensor
) -> _Step:
    """The prompt, then the first of `more` (rows, length); for a decoder that starts with one token a few of them.

    They are not the model's own: two rows that say the same could be swapped unnoticed.
    """
    del kwargs["logits_processor"], kwargs["stopping_criteria"]
    outputs = upstream.prefill(model, tokens, generation_config, kwargs)
    for step in range(DECODED if model.config.is_encoder_decoder else 1):
        if step:
            outputs = model(**upstream.next_inputs(model, tokens, kwargs, 1), return_dict=True)
        tokens = torch.cat([tokens, more[:, step : step + 1]], dim=-1)
        kwargs = upstream.advance(model, outputs, kwargs, tokens, 1)
    return _Step(model, tokens, kwargs)
