"""The oracle: the plainest decoder there can be.

No cache, everything recomputed, each row alone and unpadded, on a model instance of its own. Nothing
clever, so that nothing can be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from conformance import upstream
from conformance.architectures.capabilities import facts, stepwise_reason
from conformance.build import Scenario
from conformance.clock import MODEL_CODE
from conformance.limits import time_limit
from conformance.outcome import Crash


class OracleRaised(RuntimeError):
    """The model does not run without a cache: there is nothing to compare with."""


class Oracle:
    """Recomputes logits for the rows of one scenario, under any tokens."""

    def __init__(self, scenario: Scenario, dtype: str | None = None, noise: tuple[int, float] | None = None) -> None:
        self.scenario = scenario
        self._dtype, self._noise = dtype, noise
        self._memo: dict[tuple[int, tuple[int, ...]], torch.Tensor] = {}

    @cached_property
    def model(self) -> Any:
        """The oracle's own model; where weights are tied, one with copies of them."""
        return self.scenario.model(self._dtype, self._noise, untied=bool(self.scenario.case.model.tied))

    def stepwise(self, length: int) -> bool:
        """Whether a sequence of this length needs one forward a step: at once would be another function."""
        model = self.scenario.case.model
        return self.scenario.encoder_decoder or bool(stepwise_reason(model.architecture, model.config, length))

    @cached_property
    def prepared(self) -> bool:
        """Whether this type's own preparation is part of the function that it decodes with."""
        return "prepared_oracle" in facts(self.scenario.case.model.architecture)

    def logits(self, row: int, tokens: Sequence[int]) -> torch.Tensor:
        """Logits, shape (len(tokens), vocabulary): entry s predicts tokens[s] from all that precedes it."""
        key = (row, tuple(tokens))
        if key not in self._memo:
            with torch.no_grad(), MODEL_CODE.running():
                length = len(self._start(row)) + len(tokens)
                decode = self.step_by_step if self.stepwise(length) else self.at_once
                self._memo[key] = decode(row, tokens)
        return self._memo[key]

    def at_once(self, row: int, tokens: Sequence[int]) -> torch.Tensor:
        """One forward over the whole sequence: the short cut, where it equals `step_by_step`."""
        start = self._start(row)
        whole = self._forward(row, [*start, *tokens[:-1]])
        return whole[len(start) - 1 :]

    def step_by_step(self, row: int, tokens: Sequence[int]) -> torch.Tensor:
        """One forward a step over everything that precedes it."""
        start = self._start(row)
        steps = [self._forward(row, [*start, *tokens[:n]])[-1] for n in range(len(tokens))]
        return torch.stack(steps)

    def greedy(self, row: int, limit: int, eos: Sequence[int], processors: Any = None) -> list[int]:
        """The row's own greedy decoding: at most `limit` tokens, the first end token included."""
        tokens: list[int] = []
        while len(tokens) < limit and not (tokens and tokens[-1] in eos):
            scores = self.logits(row, [*tokens, 0])[-1].float()[None].clone()
            if processors:
                scores = processors(torch.tensor([[*self._start(row), *tokens]]), scores)
            tokens.append(int(scores[0].argmax()))
        return tokens

    def _start(self, row: int) -> list[int]:
        if self.scenario.encoder_decoder:
            return [self.scenario.decoder_start]
        return list(self.scenario.rows[row])

    @cached_property
    def _encoded(self) -> dict[int, Any]:
        return {}

    def _encoder_outputs(self, row: int) -> dict[str, Any]:
        if row not in self._encoded:
            ids = torch.tensor([list(self.scenario.rows[row])])
            mask = torch.ones_like(ids)
            try:
                with time_limit():
                    outputs = self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True)
            except Exception as error:
                raise OracleRaised(str(Crash.of(error))) from error
            self._encoded[row] = {"encoder_outputs": outputs, "attention_mask": mask}
        return self._encoded[row]

    def _forward(self, row: int, ids: Sequence[int]) -> torch.Tensor:
        """Logits of shape (len(ids), vocabulary), float32 or wider."""
        tensor = torch.tensor([list(ids)])
        taken = upstream.forward_parameters(self.scenario.model_class)
        if self.scenario.encoder_decoder:
            arguments = {"decoder_input_ids": tensor, **self._encoder_outputs(row)}
            if "decoder_attention_mask" in taken:
                arguments["decoder_attention_mask"] = torch.ones_like(tensor)
        elif self.prepared:
            mask = torch.ones_like(tensor)
            arguments = self.model.prepare_inputs_for_generation(tensor, attention_mask=mask, use_cache=False)
        else:
            arguments = {"input_ids": tensor, "attention_mask": torch.ones_like(tensor)}
            if self.counts_positions and "position_ids" in taken:
                arguments["position_ids"] = torch.arange(len(ids))[None]
        if self.scenario.media:
            arguments |= self.scenario.media.inputs([row], len(ids), self.model.dtype)
        if "attention_mask" not in taken and "kwargs" not in taken:
            arguments.pop("attention_mask", None)
        try:
            with time_limit():
                logits: torch.Tensor = self.model(**{**arguments, "use_cache": False, "return_dict": True}).logits[0]
        except Exception as error:
            raise OracleRaised(str(Crash.of(error))) from error
        logits = logits[-len(ids) :]  # an image that precedes the text without placeholders has logits too
        return logits if logits.dtype == torch.float64 else logits.float()

    @property
    def counts_positions(self) -> bool:
        """Whether a forward that takes positions is given 0, 1, 2, ...: not where the model counts in its own way."""
        if self.scenario.media and self.scenario.media.recipe.derives_positions:
            return False
        return "no_position_ids" not in facts(self.scenario.case.model.architecture)
