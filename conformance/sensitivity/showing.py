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
from conformance.architectures.capabilities import facts
from conformance.architectures.cells import kinds
from conformance.build import Scenario
from conformance.case import Case
from conformance.compare import BOUND
from conformance.sensitivity.cells import FAULTS
from conformance.sensitivity.planting import Plant, nothing, planter, shift

DECODED = 3  # tokens before a fault in a decoder whose prompt is a single start token, the same in every row
NO_POSITIONS = "no layer of this model reads positions"
BEGINS_A_CHUNK = "the next token begins a chunk, and reads nothing before it"
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
        reach = _reach(scenario.case)
        for kind, fault in product(sorted(set(kinds(scenario.config)) & set(wanted)), FAULTS):
            moved = fault == "position shifted"
            if (moved or kind == "chunked") and step.begins_a_chunk():
                absent[kind, fault] = BEGINS_A_CHUNK
                continue
            got = step.logits(nothing if moved else planter(kind, fault, random, reach), moved)
            if moved and isinstance(got, torch.Tensor) and torch.equal(got, right) and not step.reads_positions():
                got = NO_POSITIONS
            if isinstance(got, str):
                absent[kind, fault] = got
            else:
                found[kind, fault] = got is None or bool((got - right).abs().nan_to_num(0.0).max() > bound)
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

    def logits(self, plant: Plant, moved: bool = False) -> torch.Tensor | str | None:
        """The next logits, (rows, vocabulary), after a change to a copy of the cache; or why it cannot be made.

        None where the forward raises, which nobody overlooks: a selector of blocks meets a position past the last one.
        """
        ours = copy.deepcopy(self.kwargs)
        reason = plant(ours.get(upstream.cache_name(ours) or ""))
        if reason:
            return reason
        inputs = upstream.next_inputs(self.model, self.tokens, ours, 1)
        reason = shift(inputs) if moved else ""
        if reason:
            return reason
        try:
            logits: torch.Tensor = self.model(**inputs, return_dict=True).logits
        except (IndexError, RuntimeError):
            return None
        return logits[:, -1].double()

    def begins_a_chunk(self) -> bool:
        """Whether the next token is the first of a chunk, in a model with layers that attend within chunks."""
        config = self.model.config.get_text_config(decoder=True)
        return "chunked" in kinds(config) and (self.tokens.shape[1] - 1) % int(config.attention_chunk_size) == 0

    def reads_positions(self) -> bool:
        """Whether a forward without a cache says anything else where its tokens stand further and further apart."""
        ours = {**self.kwargs, "use_cache": False}
        ours.pop(upstream.cache_name(ours) or "", None)
        inputs = upstream.next_inputs(self.model, self.tokens, ours, 1)
        name = next(n for n in upstream.POSITIONS if inputs.get(n) is not None)
        if not self.model.config.is_encoder_decoder:  # without a mask, gaps in the positions are ends of sequences
            inputs["attention_mask"] = torch.ones_like(self.tokens)
        apart = {**inputs, name: 2 * inputs[name]}
        plain, moved = (self.model(**given, return_dict=True).logits for given in (inputs, apart))
        return not torch.equal(plain, moved)


def _reach(case: Case) -> int | None:
    """How many of the newest entries the next token is sure to read, where it need not read all of them."""
    limit = facts(case.model.architecture).get("reads")
    window = case.model.config.get(str(limit["attribute"])) if isinstance(limit, dict) else None
    return max(1, int(window) - 1) if isinstance(window, int) else None  # the window counts the token itself


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
