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
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from conformance import upstream

# Inputs of a forward that hold something for each new token, in their last dimension.
PER_TOKEN = ("input_ids", "decoder_input_ids", "position_ids", "decoder_position_ids", "cache_position")
# Inputs of a forward that hold something for each token so far, in their last dimension: `decoder_` where it has one.
MASKS = ("attention_mask", "decoder_attention_mask")
OURS = ("_rollback",)


@dataclass(frozen=True)
class Forward:
    """One forward: the cache before it, and its inputs without the cache."""

    before: dict[str, Any]
    inputs: dict[str, Any]

    @property
    def count(self) -> int:
        """How many tokens a row it fed."""
        return int(self._ids.shape[1])

    @property
    def _ids(self) -> torch.Tensor:
        ids = self.inputs.get("decoder_input_ids", self.inputs.get("input_ids"))
        assert ids is not None
        return ids


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


def shortened(a_cache: Any, inputs: Mapping[str, Any], count: int, gone: int) -> dict[str, Any]:
    """The inputs of a forward without its last `gone` tokens of `count + gone`."""
    mask = "decoder_attention_mask" if "decoder_input_ids" in inputs else "attention_mask"
    short = dict(inputs)
    for name in PER_TOKEN:
        if isinstance(inputs.get(name), torch.Tensor):
            short[name] = inputs[name][..., :count]
    if inputs.get(mask) is not None:
        sizes = kv_sizes(a_cache, count, gone)
        given = inputs[mask]
        parts = given if isinstance(given, Mapping) else {"": given}
        cut = {key: _shorter_mask(value, count, gone, sizes) for key, value in parts.items()}
        short[mask] = cut if isinstance(given, Mapping) else cut[""]
    for name in ("logits_to_keep", "num_logits_to_keep"):
        if isinstance(short.get(name), int):
            short[name] = min(short[name], count)
    return short


def kv_sizes(a_cache: Any, count: int, gone: int) -> dict[int, int]:
    """How many keys the masks are told to have for all the tokens → and for the ones that stay."""
    found = {}
    for layer in upstream.cache_layers(a_cache):
        length = int(layer.get_seq_length()) if hasattr(layer, "get_seq_length") else 0
        before, after = (upstream.mask_sizes(layer, size, length) for size in (count + gone, count))
        if before and after:
            found[before[0]] = after[0]
    return found


def _shorter_mask(mask: Any, count: int, gone: int, sizes: Mapping[int, int]) -> Any:
    if not isinstance(mask, torch.Tensor):
        return mask
    if mask.ndim == 2:
        return mask[:, : mask.shape[1] - gone]
    return mask[..., :count, : sizes.get(mask.shape[-1], mask.shape[-1])]


def rows_of(value: Any, rows: Sequence[int], batch: int) -> Any:
    """The rows of every tensor whose first dimension is the batch."""
    if isinstance(value, torch.Tensor):
        return value[list(rows)] if value.ndim > 1 and value.shape[0] == batch else value
    if isinstance(value, tuple | list):
        return type(value)(rows_of(item, rows, batch) for item in value)
    if isinstance(value, Mapping):
        return type(value)(**{name: rows_of(item, rows, batch) for name, item in value.items()})
    return value


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
    caught: list[Any] = []

    def catch(_: Any, input_ids: torch.Tensor, generation_config: Any, **kwargs: Any) -> torch.Tensor:
        for name in ("logits_processor", "stopping_criteria"):
            kwargs.pop(name, None)
        keyword = upstream.cache_name(kwargs)
        caught.append(kwargs[keyword] if keyword else _own_kind(model, input_ids, generation_config, kwargs))
        return input_ids

    with torch.no_grad():
        model.generate(**arguments, custom_generate=catch)
    if caught[0] is None:
        return None
    attach(model)
    return adopt(caught[0], model)


def _own_kind(model: Any, input_ids: torch.Tensor, generation_config: Any, kwargs: dict[str, Any]) -> Any:
    """An empty cache of the class that the model makes in its first forward."""
    from transformers.cache_utils import Cache

    made = upstream.cache_of(upstream.prefill(model, input_ids, generation_config, kwargs))
    return type(made)() if isinstance(made, Cache) else None
