"""Which parameters of a model are one: groups of names, from what its classes declare and from shared storage.

`_tied_weights_keys` of a `PreTrainedModel` maps a target to a source. Both are parameter names, module names or
regular expressions over them, relative to the model that declares them (see the documentation of
`PreTrainedModel.get_expanded_tied_weights_keys`). The rules here:

* a pattern names a parameter when it matches the whole name, or ends at a dot of it, before or after (then it names
  a module): `layers.1` is not `layers.10`;
* the sorted targets take the sorted sources in turn, and there are as many or a multiple of them;
* a source that is itself a target of another entry leads on: all of them are one group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from conformance.tying import matching


class TyingError(ValueError):
    """A declaration that ties nothing, or that does not say what is tied to what."""


def named_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Every parameter and buffer under every name it has."""
    named = dict(model.named_parameters(remove_duplicate=False))
    return {**named, **dict(model.named_buffers(remove_duplicate=False))}


def address(tensor: torch.Tensor) -> object:
    """What two tensors have in common only where they are one: where their values lie, or the object itself.

    A parameter that is not made yet has no storage, and a sparse one keeps its values in another tensor.
    """
    if is_lazy(tensor):
        return id(tensor)
    if tensor.layout is torch.sparse_coo:
        return tensor._values().data_ptr()
    try:
        return tensor.data_ptr()
    except RuntimeError:  # another layout without a storage of its own
        return id(tensor)


def expand(declared: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Target → source by full names, for a mapping of patterns. Raises TyingError naming the entry."""
    pairs: dict[str, str] = {}
    known = list(names)
    for target, source in declared.items():
        targets, sources = matching(target, known), matching(source, known)
        if not targets or not sources or len(targets) % len(sources):
            raise TyingError(
                f"{target!r} is to be tied to {source!r}, but they name {len(targets)} and {len(sources)} parameters"
            )
        pairs |= dict(zip(targets, cycle(sources), strict=False))
    return pairs


def declared_pairs(model: nn.Module, untold: list[str] | None = None) -> dict[str, str]:
    """Target → source over all models inside `model`, each in its own names and under its own config.

    untold: gets why an entry names nothing here, as where a head was replaced or wrapped; without it, such an entry
    raises TyingError.
    """
    pairs: dict[str, str] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        dot = f"{prefix}." if prefix else ""
        for target, source in _declared(module).items():
            try:
                own = expand({target: source}, named_tensors(module))
            except TyingError as error:
                if untold is None:
                    raise
                untold.append(f"{error} of {prefix or 'the model'}")
                continue
            pairs |= {dot + one: dot + other for one, other in own.items()}
    return pairs


def _declared(module: nn.Module) -> Mapping[str, str]:
    """What one model declares under its config. Some take the declaration of their class back for themselves."""
    config: Any = getattr(module, "config", None)
    declared = vars(module).get("_tied_weights_keys", getattr(type(module), "_tied_weights_keys", None))
    tied = isinstance(declared, Mapping) and getattr(config, "tie_word_embeddings", False)
    return declared if tied else {}


def shared_pairs(model: nn.Module) -> Iterator[tuple[str, str]]:
    """Names of one and the same tensor object, each with the first of them."""
    first: dict[int, str] = {}
    for name, tensor in named_tensors(model).items():
        if id(tensor) in first:
            yield name, first[id(tensor)]
        first.setdefault(id(tensor), name)


def tied_groups(model: nn.Module, untold: list[str] | None = None) -> list[tuple[str, ...]]:
    """Sorted groups of at least two names that are one parameter, by declaration or because they are one object.

    untold: as of `declared_pairs`.
    """
    return merged([*declared_pairs(model, untold).items(), *shared_pairs(model)])


def merged(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The connected groups of a relation, each sorted, in order of their first name."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for one, other in pairs:
        leader[find(one)] = find(other)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in leader:
        groups[find(name)].append(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)
