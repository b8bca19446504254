"""Who drafts for assisted decoding: another model, the prompt itself, or the model's own first layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

from conformance.reference.decode import choose
from conformance.reference.fed import Fed, Mark


class Drafter(Protocol):
    """Proposes what may come next."""

    def propose(self, input_ids: torch.Tensor, room: int) -> tuple[list[int], torch.Tensor | None]:
        """At most `room` tokens to follow `input_ids`, shape (1, length), and, when they were drawn, the
        distributions that they were drawn from, shape (tokens, vocabulary).
        """
        ...

    def learn(self, drafted: int, accepted: int) -> None:
        """How the last proposal went."""
        ...


class Lookup:
    """The tokens that followed the longest earlier occurrence of the last few tokens."""

    def __init__(self, tokens: int, ngram: int) -> None:
        self.tokens, self.ngram = tokens, ngram

    def propose(self, input_ids: torch.Tensor, room: int) -> tuple[list[int], torch.Tensor | None]:
        """See `Drafter`."""
        ids, most = input_ids[0].tolist(), min(self.tokens, room)
        for size in range(min(self.ngram, len(ids) - 1), 0, -1):
            for start in range(len(ids) - size):
                if ids[start : start + size] == ids[-size:]:
                    return ids[start + size :][:most], None
        return [], None

    def learn(self, drafted: int, accepted: int) -> None:
        """Always the same number of tokens."""


class ModelDrafter:
    """Another model, decoding on its own cache: prefilled once, rolled back to the accepted prefix every round."""

    def __init__(self, model: Any, prepared: Any, limits: dict[str, Any], do_sample: bool) -> None:
        self.prompt, self.config, self.processors, kwargs = prepared
        self.fed, self.do_sample = Fed(model, kwargs), do_sample
        self.tokens, self.schedule = int(limits["tokens"]), limits["schedule"]
        self.threshold = float(limits["threshold"] or 0.0)
        self._base: Mark | None = None

    def propose(self, input_ids: torch.Tensor, room: int) -> tuple[list[int], torch.Tensor | None]:
        """See `Drafter`."""
        logits = self._catch_up(input_ids)
        self._base = self.fed.mark()
        tokens: list[int] = []
        chances: list[torch.Tensor] = []
        while len(tokens) < min(self.tokens, room):
            scores = self.processors(input_ids, logits[:, -1].to(copy=True, dtype=torch.float32))
            chance = torch.softmax(scores, dim=-1)
            token = choose(scores, self.do_sample)
            tokens.append(int(token))
            chances.append(chance[0])
            input_ids = torch.cat([input_ids, token[:, None]], dim=-1)
            if float(chance[0, tokens[-1]]) < self.threshold or len(tokens) == min(self.tokens, room):
                break
            logits = self.fed.feed(input_ids)
        return tokens, torch.stack(chances) if self.do_sample and chances else None

    def _catch_up(self, input_ids: torch.Tensor) -> torch.Tensor:
        if self._base is None:
            self.fed.prefill(self.prompt, self.config)
        else:
            self.fed.back(self._base)
        return self.fed.feed(input_ids)

    def learn(self, drafted: int, accepted: int) -> None:
        """Two tokens more after a success, one fewer after a failure, unless the schedule is constant."""
        if self.schedule != "constant":
            self.tokens = self.tokens + 2 if accepted == drafted else max(1, self.tokens - 1)


class FirstLayers:
    """The model's own first layers, recomputing everything."""

    def __init__(self, model: Any, layers: int, tokens: int) -> None:
        self.model, self.layers, self.tokens = model, layers, tokens

    def propose(self, input_ids: torch.Tensor, room: int) -> tuple[list[int], torch.Tensor | None]:
        """See `Drafter`."""
        tokens: list[int] = []
        with only_first_layers(self.model, self.layers):
            while len(tokens) < min(self.tokens, room):
                logits = self.model(input_ids=input_ids, use_cache=False, return_dict=True).logits[:, -1]
                tokens.append(int(logits.argmax()))
                input_ids = torch.cat([input_ids, logits.argmax(dim=-1, keepdim=True)], dim=-1)
        return tokens, None

    def learn(self, drafted: int, accepted: int) -> None:
        """Always the same number of tokens."""


@contextmanager
def only_first_layers(model: Any, layers: int) -> Iterator[None]:
    """The model without its later layers, for the length of a block, whatever is raised inside it.

    Those of what decodes: a tower for images may have as many.
    """
    count = model.config.get_text_config(decoder=True).num_hidden_layers
    places = [
        (parent, name, child)
        for parent in (model.get_decoder() or model).modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.ModuleList) and len(child) == count
    ]
    try:
        for parent, name, child in places:
            setattr(parent, name, child[:layers])
        yield
    finally:
        for parent, name, child in places:
            setattr(parent, name, child)
