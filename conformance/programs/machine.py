"""A model and a cache that are fed as `generate` feeds them, outside of its loop.

`generate` prepares the cache, masks and positions once (`upstream.Handed`); a machine then runs forwards over any rows
of that prompt, each row at its own place of the batch, with the model's own preparation of inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from conformance import upstream
from conformance.plans.rollback_programs import cut
from conformance.programs.copying import copied
from conformance.reference.decode import OtherTokensFed, fed_tokens
from conformance.upstream import Handed

Group = tuple[tuple[int, ...], ...]  # what one forward feeds: the tokens of each row
Groups = tuple[Group, ...]  # of each forward after the prompt


@dataclass
class Machine:
    """One cache in use.

    sources: which row of the prompt each row of the batch is; groups: of each forward after the prompt, the tokens of
    each row that are left; owns_model: whether each machine has a model of its own.
    """

    model: Any
    prepared: Handed
    cache: Any
    sources: list[int]
    groups: Groups = ()
    ids: torch.Tensor | None = None
    outputs: Any = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    owns_model: bool = False

    @classmethod
    def empty(cls, model: Any, prepared: Handed, sources: Sequence[int], *, owns_model: bool = False) -> Machine:
        """A machine with an empty cache of its own."""
        return cls(model, prepared, prepared.cache, list(sources), owns_model=owns_model).copy()

    def copy(self) -> Machine:
        """The same, with a cache of its own, so that a look ahead changes nothing.

        And with a model of its own where the type keeps a part of its state on modules.
        """
        model = copy.deepcopy(self.model) if self.owns_model else self.model
        cache = copied(self.cache)
        return replace(self, model=model, cache=cache, sources=list(self.sources), kwargs=dict(self.kwargs))

    @property
    def filled(self) -> bool:
        """Whether the prompt is in the cache."""
        return self.ids is not None

    def prefill(self) -> torch.Tensor:
        """Feed the prompt. Logits of its last position, shape (rows, 1, vocabulary)."""
        self.kwargs = self._of_rows(self.prepared.kwargs)
        self.ids = self.prepared.input_ids[self.sources]
        arguments = dict(self.kwargs)
        if self.cache is not None:
            arguments[self.prepared.cache_name or upstream.cache_argument(self.model)] = self.cache
        self.outputs = upstream.prefill(self.model, self.ids, self.prepared.generation_config, arguments)
        for name in upstream.UNBATCHED:  # made in the prefill by releases that have them
            if name in arguments:
                self.kwargs[name] = arguments[name]
        return self._taken(self.outputs.logits[:, -1:])

    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Feed `tokens`, shape (rows, n), in one forward. Logits of shape (rows, n, vocabulary)."""
        assert self.ids is not None
        self.ids = torch.cat([self.ids, tokens], dim=1)
        count, start = tokens.shape[1], self.prepared.input_ids.shape[1]
        kwargs = upstream.kwargs_at(self.model, self.outputs, self.kwargs, self.ids, start, count)
        kwargs[upstream.cache_name(kwargs) or upstream.cache_argument(self.model)] = self.cache
        inputs = upstream.next_inputs(self.model, self.ids, kwargs, count)
        upstream.ask_for_logits(inputs, count)
        if fed_tokens(inputs) != count:
            raise OtherTokensFed(f"asked for {count} tokens, its preparation feeds {fed_tokens(inputs)}")
        self.outputs = self.model(**inputs, return_dict=True)
        self.groups = (*self.groups, frozen(tokens.tolist()))
        return self._taken(self.outputs.logits[:, -count:])

    def _taken(self, logits: torch.Tensor) -> torch.Tensor:
        made = upstream.cache_of(self.outputs)
        self.cache = self.cache if made is None else made
        return logits if logits.dtype == torch.float64 else logits.float()

    def take_back(self, count: int) -> None:
        """Forget the last `count` tokens; the cache is cropped by whoever calls this."""
        assert self.ids is not None
        self.ids = self.ids[:, : self.ids.shape[1] - count]
        self.groups = tuple(frozen(group) for group in cut([[list(row) for row in g] for g in self.groups], count))

    def pick(self, rows: Sequence[int]) -> None:
        """The batch becomes these of its rows; the cache is moved by whoever calls this."""
        self.sources = [self.sources[row] for row in rows]
        self.kwargs = {**self._of_rows(self.prepared.kwargs), **self._positions()}
        self.ids = None if self.ids is None else self.ids[list(rows)]
        self.groups = tuple(tuple(group[row] for row in rows) for group in self.groups)

    def forget(self) -> None:
        """As before the prefill; the cache is reset by whoever calls this."""
        self.ids, self.outputs, self.kwargs, self.groups = None, None, {}, ()

    def _positions(self) -> dict[str, Any]:
        return {name: self.kwargs[name] for name in upstream.UNBATCHED if name in self.kwargs}

    def _of_rows(self, values: Mapping[str, Any]) -> dict[str, Any]:
        batch = self.prepared.input_ids.shape[0]
        return {name: _picked(value, self.sources, batch) for name, value in values.items()}


def frozen(rows: Sequence[Sequence[int]]) -> Group:
    """A group of tokens for each row, as a key."""
    return tuple(tuple(row) for row in rows)


def _picked(value: Any, rows: Sequence[int], batch: int) -> Any:
    """The rows of a tensor whose first dimension is the batch, and of every such tensor of a model's output."""
    if isinstance(value, torch.Tensor):
        return value[list(rows)] if value.ndim > 1 and value.shape[0] == batch else value
    if isinstance(value, tuple):
        return tuple(_picked(item, rows, batch) for item in value)
    if isinstance(value, Mapping):
        return type(value)(**{name: _picked(item, rows, batch) for name, item in value.items()})
    return value
