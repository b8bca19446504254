"""The reference rollback: a cache of any kind that can take tokens back, because it remembers what it was fed.

A layer with a window, a convolution's tail or a recurrent state has thrown away what an earlier state needs, and is
only shown that state at the end of a forward. So nothing is computed backwards here: the inputs of every forward are
kept, with a copy of the cache before each; a crop goes back to the copy before the first token that goes, and runs
the tokens that stay of that forward through the model again. Rows of a batch are moved by moving the rows of the
inputs and running all of them again. Nothing has to be known of any kind of layer.
"""

from __future__ import annotations

import copy
import inspect
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from conformance import upstream
from conformance.reference.forwards import Forward, rows_of, shortened

OURS = ("_rollback",)


class History:
    """What a cache was fed, and how to feed it again."""

    def __init__(self, model: Any, empty: dict[str, Any]) -> None:
        self.model, self.empty = weakref.ref(model), empty
        self.forwards: list[Forward] = []
        self.replaying = False
        self.name = upstream.cache_argument(model)

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        other = History(self.model(), self.empty)
        other.forwards = list(self.forwards)
        return other

    @property
    def length(self) -> int:
        """Tokens a row that the cache has seen."""
        return sum(forward.count for forward in self.forwards)


class RollbackMixin:
    """Everything of a cache class that moves its state; `rollback_class` puts it before that class."""

    _rollback: History
    is_croppable = True
    is_compileable = False

    def activate_past_recording(self) -> None:
        """Nothing to do: the inputs are always kept."""

    def is_recording_past(self, _: int) -> bool:
        """Layers are never asked to record: they store no more than they need."""
        return False

    def crop(self, tokens_to_remove: int) -> None:
        """Take the last tokens back: -j removes j. Raises ValueError, with nothing changed, beyond what it was fed."""
        history, count = self._rollback, -int(tokens_to_remove)
        if count < 0:
            raise ValueError(f"crop takes a number of tokens to remove as a negative number, got {tokens_to_remove}")
        if count > history.length:
            raise ValueError(f"cannot take back {count} tokens: the cache was fed {history.length}")
        while count > 0:
            last = history.forwards.pop()
            restore(self, last.before)
            if last.count > count:
                feed_again(self, last, last.count - count)
            count -= last.count

    def reset(self) -> None:
        """As before the first forward."""
        restore(self, self._rollback.empty)
        self._rollback.forwards.clear()

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """The batch becomes these of its rows."""
        self._pick(beam_idx.tolist())

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """The batch becomes these of its rows."""
        self._pick(indices.tolist())

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Every row `repeats` times, next to each other."""
        if self._rollback.forwards:
            batch = self._rollback.forwards[0]._ids.shape[0]
            self._pick([row for row in range(batch) for _ in range(repeats)])

    def _pick(self, rows: Sequence[int]) -> None:
        forwards = list(self._rollback.forwards)
        self.reset()
        for forward in forwards:
            batch = int(forward._ids.shape[0])
            moved = {name: rows_of(value, rows, batch) for name, value in forward.inputs.items()}
            feed_again(self, Forward({}, moved), forward.count)


@cache
def rollback_class(kind: type) -> type:
    """The cache class of this kind whose state is moved by remembering."""
    return type(f"Rollback{kind.__name__}", (RollbackMixin, kind), {})


def adopt(a_cache: Any, model: Any, empty: dict[str, Any] | None = None) -> Any:
    """Turn an installed cache, in place, into one that remembers what `model` feeds it; `empty`: its first state."""
    a_cache._rollback = History(model, state_of(a_cache) if empty is None else empty)
    kind: Any = type(a_cache)
    a_cache.__class__ = rollback_class(kind)
    return a_cache


def attach(model: Any) -> None:
    """Have every forward of a model written down by the cache that it is given, if that remembers."""
    if not getattr(model, "_rollback_attached", False):
        model._rollback_attached = True
        model.register_forward_pre_hook(_write_down, with_kwargs=True)


def _write_down(model: Any, arguments: tuple[Any, ...], inputs: dict[str, Any]) -> None:
    name = upstream.cache_name(inputs)
    a_cache = inputs[name] if name else None
    history = getattr(a_cache, "_rollback", None)
    if history is None or history.replaying:
        return
    named = dict(zip(inspect.signature(type(model).forward).parameters, (model, *arguments), strict=False))
    named.pop("self", None)
    kept = {key: value for key, value in {**named, **inputs}.items() if key != name}
    history.forwards.append(Forward(state_of(a_cache), kept))
    history.name = name or history.name


def feed_again(a_cache: Any, forward: Forward, count: int) -> None:
    """Run the first `count` tokens of a forward through the model again, onto the cache as it is."""
    history: History = a_cache._rollback
    gone = forward.count - count
    inputs = shortened(a_cache, forward.inputs, count, gone) if gone else dict(forward.inputs)
    before = state_of(a_cache)
    history.replaying = True
    try:
        with torch.no_grad():
            history.model()(**inputs, **{history.name: a_cache})  # type: ignore[misc]
    finally:
        history.replaying = False
    history.forwards.append(Forward(before, inputs))


def state_of(a_cache: Any) -> dict[str, Any]:
    """A copy of all that a cache holds."""
    return copy.deepcopy({name: value for name, value in vars(a_cache).items() if name not in OURS})


def restore(a_cache: Any, state: Mapping[str, Any]) -> None:
    """Put a cache back, in place, as `state_of` found it."""
    kept = {name: value for name, value in vars(a_cache).items() if name in OURS}
    vars(a_cache).clear()
    vars(a_cache).update(copy.deepcopy(dict(state)), **kept)


def cache_for(model: Any, arguments: Mapping[str, Any]) -> Any:
    """The cache that `model.generate(**arguments)` would use, as one that remembers, and empty.

    None where the model keeps its state in something that is no cache class.
    """
    with torch.no_grad():
        handed = upstream.handed_to_loop(model, arguments)
        cache = handed.cache if handed.cache_name else _own_kind(model, handed)
    if cache is None:
        return None
    attach(model)
    return adopt(cache, model)


def _own_kind(model: Any, handed: upstream.Handed) -> Any:
    """An empty cache of the class that the model makes in its first forward."""
    from transformers.cache_utils import Cache

    made = upstream.cache_of(upstream.prefill(model, handed.input_ids, handed.generation_config, handed.kwargs))
    return type(made)() if isinstance(made, Cache) else None
