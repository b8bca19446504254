"""A model together with all that it has been fed: forwards over further tokens, and back to an earlier state."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch

from conformance import upstream
from conformance.reference.prefill import Start


@dataclass(frozen=True)
class Mark:
    """A state to come back to."""

    outputs: Any
    kwargs: dict[str, Any]
    cache: Any
    length: int


class Fed:
    """A model in the middle of a generation. `length`: how many positions its cache holds."""

    def __init__(self, model: Any, kwargs: dict[str, Any]) -> None:
        self.model, self.kwargs = model, kwargs
        self.outputs: Any = None
        self.length = 0

    def prefill(self, input_ids: torch.Tensor, generation_config: Any, start: Start | None = None) -> torch.Tensor:
        """The prompt, once; logits of its last position, shape (batch, 1, vocabulary)."""
        start = start or Start()
        self.outputs = start.prefill(self.model, input_ids, generation_config, self.kwargs)
        self.length = input_ids.shape[1]
        logits: torch.Tensor = self.outputs.logits[:, -1:]
        return logits

    def feed(self, input_ids: torch.Tensor) -> torch.Tensor:
        """What of `input_ids`, shape (batch, length), it has not seen; logits, shape (batch, new, vocabulary)."""
        count = input_ids.shape[1] - self.length
        self.kwargs = upstream.advance(self.model, self.outputs, self.kwargs, input_ids, count)
        inputs = upstream.next_inputs(self.model, input_ids, self.kwargs, count)
        upstream.ask_for_logits(inputs, count)
        self.outputs = self.model(**inputs, return_dict=True)
        self.length = input_ids.shape[1]
        logits: torch.Tensor = self.outputs.logits[:, -count:]
        return logits

    def mark(self) -> Mark:
        """The present state, copied."""
        return Mark(self.outputs, dict(self.kwargs), copy.deepcopy(self._cache()), self.length)

    def back(self, mark: Mark) -> None:
        """As at the mark: the caller's own cache stays the same object. A mark serves once."""
        cache, kept = self._cache(), mark.cache
        if hasattr(cache, "__dict__"):
            vars(cache).clear()
            vars(cache).update(vars(kept))
            kept = cache
        self.outputs, self.kwargs, self.length = mark.outputs, dict(mark.kwargs), mark.length
        name = upstream.cache_name(self.outputs)
        if name is not None:
            self.outputs[name] = kept
            self.kwargs[name] = kept

    def _cache(self) -> Any:
        name = upstream.cache_name(self.outputs)
        return None if name is None else self.outputs[name]
