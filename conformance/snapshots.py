"""Deep copies of what somebody owns, to tell afterwards whether it was changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import torch

MAX_DEPTH = 8
# What torch keeps in a module's __dict__ beside the attributes that a model's author put there.
TORCH_INTERNALS = frozenset({"_modules"})

LONGER = "a table of positions, computed anew once a sequence is longer than it"
RESCALED = "RWKV divides some weights once, before its first forward in evaluation mode"
COMPUTED_ANEW = "chosen by every forward for its own positions, before they are read"
GROWN = "frequencies of the longest sequence so far: whether the next call begins with its own, `repeatable` says"
BY_LAYERS = ("", "full_attention_", "sliding_attention_")  # frequencies of all layers, or of those of a kind
KEPT_WHOLE = "model._cache"  # the one attribute under which everything is kept on purpose
# What a model keeps between calls on purpose, and no outcome depends on: (whose, end of path) → reason. Whose: a model
# type, a rope type, or * for any.
KEPT_ON_PURPOSE = {
    ("*", KEPT_WHOLE): "the static cache of the last call, kept to avoid recompilation",
    ("*", "_previous_max_cache_length"): "the length of the last static cache, kept to avoid recompilation",
    ("*", "_output_capturing_hooks_installed"): "hooks for hidden states and attentions, installed at their first use",
    ("DiaForConditionalGeneration", "_uses_cfg"): "whether this call guides, told anew by every call before it is read",
    ("*", "weights"): LONGER,
    ("fsmt", "embed_positions.weight"): LONGER,
    ("longrope", "inv_freq"): COMPUTED_ANEW,
    ("longrope", "long_inv_freq"): COMPUTED_ANEW,
    **{("dynamic", layers + name): GROWN for layers, name in product(BY_LAYERS, ("inv_freq", "max_seq_len_cached"))},
    ("rwkv", "layers_are_rescaled"): RESCALED,
    ("rwkv", "attention.output.weight"): RESCALED,
    ("rwkv", "feed_forward.value.weight"): RESCALED,
}

Flat = dict[str, Any]
PLAIN = frozenset({type(None), bool, int, float, str, torch.dtype, torch.Tensor, torch.nn.Parameter})


def flatten(
    value: Any, path: str = "", depth: int = 0, seen: frozenset[int] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """Every leaf of nested mappings, sequences and plain objects, as (dotted path, leaf); tensors are leaves.

    A sequence has its kind and its length as a leaf of its own.
    """
    if type(value) in PLAIN or isinstance(value, torch.Tensor | int | float | str):
        yield path, value
    elif id(value) in seen or depth > MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key in value:
            yield from flatten(value[key], f"{path}.{key}", depth + 1, seen | {id(value)})
    elif isinstance(value, np.ndarray):
        yield path, value.tobytes()
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield f"{path}.length", f"{type(value).__name__} of {len(value)}"
        for index, item in enumerate(value):
            yield from flatten(item, f"{path}.{index}", depth + 1, seen | {id(value)})
    elif hasattr(value, "__dict__") and not isinstance(value, type | torch.nn.Module) and not callable(value):
        yield from flatten(vars(value), path, depth + 1, seen | {id(value)})
    elif not callable(value):
        yield path, f"a {type(value).__name__}"


def snapshot(value: Any, name: str = "") -> Flat:
    """Every leaf of `value`, tensors cloned, so that a later change in place shows."""
    return {
        path: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for path, leaf in flatten(value, name)
    }


def kept_on_purpose(owner: str, path: str, rope: str = "") -> str | None:
    """Why a model of this type, with this rope type, may change what is at a path of its `module_state`, else None."""
    for (whose, name), reason in KEPT_ON_PURPOSE.items():
        whole = name == KEPT_WHOLE and f"{path}.".startswith(f"{KEPT_WHOLE}.")
        if whose in ("*", owner, rope) and (whole or path.endswith(f".{name}")):
            return reason
    return None


def module_state(model: torch.nn.Module) -> Flat:
    """The attributes, parameters and buffers of every module: where a model could keep state between calls.

    Without properties that are computed once: what they hold follows from the rest.
    """
    state: Flat = {}
    for name, module in model.named_modules():
        own = {k: v for k, v in vars(module).items() if k not in TORCH_INTERNALS and not k.endswith("_hooks")}
        own = {k: v for k, v in own.items() if not isinstance(getattr(type(module), k, None), cached_property)}
        own.pop("config", None)
        own.pop("generation_config", None)
        state.update(snapshot(own, f"model.{name}" if name else "model"))
    return state


def same(one: Any, other: Any) -> bool:
    """Whether two leaves have the same type, shape, device and values; a NaN equals a NaN in the same place."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype or one.device != other.device:
            return False
        if one.device.type == "meta" or torch.equal(one, other):
            return True
        return one.is_floating_point() and _same_but_for_nan(one, other)
    return type(one) is type(other) and (one == other or (one != one and other != other))


def _same_but_for_nan(one: torch.Tensor, other: torch.Tensor) -> bool:
    nan = one.isnan()  # `nan_to_num` would make numbers of infinities, too
    return torch.equal(nan, other.isnan()) and torch.equal(one.masked_fill(nan, 0), other.masked_fill(nan, 0))


def changes(before: Flat, after: Flat) -> dict[str, str]:
    """The paths whose leaf was added, removed or changed, each with a few words."""
    found = dict.fromkeys(before.keys() - after.keys(), "removed")
    found |= dict.fromkeys(after.keys() - before.keys(), "added")
    found |= {p: describe(before[p], after[p]) for p in before.keys() & after.keys() if not same(before[p], after[p])}
    return dict(sorted(found.items()))


def describe(before: Any, after: Any) -> str:
    """A change in a few words."""
    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        if before.shape != after.shape:
            return f"shape {list(before.shape)} became {list(after.shape)}"
        return "values changed"
    return f"{_brief(before)} became {_brief(after)}"


def _brief(leaf: Any) -> str:
    return f"a tensor of shape {list(leaf.shape)}" if isinstance(leaf, torch.Tensor) else f"{leaf!r:.60}"
