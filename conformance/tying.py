"""Weights tied by name or by pattern: what the patterns of a case mean, and models with and without the ties.

A case holds pairs (target, source), as `_tied_weights_keys` of the installed release maps them: each is a name, a
module or a regular expression, matched from the beginning of a parameter's name. A module's name means that module
only: `layers.1` is not `layers.10`, and `self_attn` not `self_attn_layer_norm`. The sorted targets of a pair are given
the sorted sources in turn. The meaning here is that of equalities: the order of the pairs is of no consequence.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import torch

from conformance import upstream
from conformance.architectures import catalogue
from conformance.errors import CaseRefused
from conformance.limits import TookTooLong, time_limit

Pairs = Sequence[tuple[str, str]]
Shapes = Mapping[str, tuple[int, ...]]
PATTERN_SECONDS = 10.0  # a pattern from a stranger may backtrack for ever
PLAIN = re.compile(r"([A-Za-z0-9_.]|\\\.)+")  # a name, its dots escaped or not


class WrongTies(CaseRefused):
    """Patterns that tie nothing, more than they can, or one weight to two others."""


@dataclass(frozen=True)
class Group:
    """Weights that are one: the source, and the names that share it."""

    source: str
    targets: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the source first."""
        return (self.source, *self.targets)


def resolve(pairs: Pairs, shapes: Shapes) -> tuple[Group, ...]:
    """The groups that the pairs make of weights with these shapes, sorted by source.

    Raises WrongTies, naming the pattern, where one matches nothing, where sources cannot be dealt out evenly, where
    shapes differ, and where a weight is tied to two sources that are not the same.
    """
    sources: dict[str, dict[str, str]] = {}  # target → its sources → the pair that says so
    for target, source in pairs:
        for one, other in _paired(target, source, shapes):
            if one != other:  # a pattern may match its own source
                sources.setdefault(one, {})[other] = f"{target!r}: {source!r}"
    groups: dict[str, list[str]] = {}
    for name in sorted(sources):
        root = _root(name, sources)
        if root != name:
            groups.setdefault(root, []).append(name)
    return tuple(Group(source, tuple(targets)) for source, targets in sorted(groups.items()))


def _paired(target: str, source: str, shapes: Shapes) -> list[tuple[str, str]]:
    targets, sources = _matches(target, shapes), _matches(source, shapes)
    for what, pattern, found in (("target", target, targets), ("source", source, sources)):
        if not found:
            raise WrongTies(f"tied: the {what} pattern {pattern!r} matches no weight of the model")
    if len(targets) % len(sources):
        count = f"{len(sources)} sources cannot be dealt out evenly to {len(targets)} targets"
        raise WrongTies(f"tied: {target!r}: {source!r}: {count}")
    pairs = list(zip(targets, cycle(sources), strict=False))
    for one, other in pairs:
        if shapes[one] != shapes[other]:
            sizes = f"of shape {list(shapes[one])} and {list(shapes[other])}"
            raise WrongTies(f"tied: {target!r}: {source!r}: {one} and {other} are {sizes}")
    return pairs


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern means, sorted: whole, or up to a dot or through it."""
    whole = re.compile(rf"(?:{pattern})(?:(?<=\.).+|\..+)?")
    return sorted(name for name in names if whole.fullmatch(name))


def _matches(pattern: str, shapes: Shapes) -> list[str]:
    try:
        with time_limit(PATTERN_SECONDS):
            return matching(pattern, shapes)
    except (re.error, OverflowError, RecursionError) as error:
        raise WrongTies(f"tied: {pattern!r} is no regular expression: {error}") from None
    except TookTooLong:
        raise WrongTies(f"tied: matching {pattern!r} takes more than {PATTERN_SECONDS:g} s") from None


def _root(name: str, sources: Mapping[str, Mapping[str, str]]) -> str:
    """The weight that a name is tied to in the end. Raises WrongTies where there are two."""
    roots = sorted(_roots(name, sources, frozenset()))
    if len(roots) > 1:
        pair = list(sources[name].values())[-1]
        raise WrongTies(f"tied: {pair}: {name} would have two sources, {' and '.join(roots)}")
    return roots[0]


def _roots(name: str, sources: Mapping[str, Mapping[str, str]], passed: frozenset[str]) -> set[str]:
    if name in passed:
        return {min(passed)}  # tied in a circle
    on = sources.get(name, ())
    return {root for source in on for root in _roots(source, sources, passed | {name})} if on else {name}


def traits_of(pairs: Pairs, groups: Sequence[Group]) -> set[str]:
    """What the ties of a case are like, as events."""
    found = {"tie: plain names" if PLAIN.fullmatch(target) else "tie: pattern" for target, _ in pairs}
    sources = [source for _, source in pairs]
    found |= {"tie: patterns on both sides" for source in sources if not PLAIN.fullmatch(source)}
    found |= {"tie: a module by its name" for group in groups for target, _ in pairs if _names_module(target, group)}
    found |= {"tie: several targets" for group in groups if len(group.targets) > 1}
    matched = [frozenset(matching(target, group.targets)) for target, _ in pairs for group in groups]
    overlapping = any(a & b for i, a in enumerate(matched) for j, b in enumerate(matched) if i < j)
    found |= {"tie: overlapping patterns"} if overlapping else set()
    names = [name for group in groups for name in group.names]
    found |= {"tie: embeddings"} if any("embed" in name or "wte" in name for name in names) else set()
    crosses = any("encoder." in group.source and any("decoder." in t for t in group.targets) for group in groups)
    crosses |= any("decoder." in group.source and any("encoder." in t for t in group.targets) for group in groups)
    return found | ({"tie: encoder and decoder"} if crosses else set())


def _names_module(target: str, group: Group) -> bool:
    """Whether a target names, without a dot at its end, a module with a weight of this group."""
    name = target.replace("\\.", ".")
    bare = PLAIN.fullmatch(target) and not name.endswith(".")
    return bool(bare) and any(other.startswith(f"{name}.") for other in group.targets)


def elsewhere(pairs: Pairs, names: Sequence[str]) -> Pairs:
    """The same ties of other weights, all of one shape: `names`, taken in turn for those of the pairs.

    None of them where a pair is a true pattern, or where there are too few names.
    """
    written = [name for pair in pairs for name in pair]
    known = list(dict.fromkeys(name.replace("\\.", ".") for name in written))
    if len(known) > len(names) or not all(PLAIN.fullmatch(name) for name in written):
        return ()
    new = {old: re.escape(name) for old, name in zip(known, names, strict=False)}
    new |= {old: name for old, name in zip(known, names, strict=False) if old in written}
    return tuple((new[t.replace("\\.", ".")], new[s.replace("\\.", ".")]) for t, s in pairs)


def subclass(model_class: Any, pairs: Pairs) -> Any:
    """A subclass of a model class of the release that ties these, and only these, of its own weights."""
    tied = {"_tied_weights_keys": dict(pairs), "__module__": model_class.__module__, "__doc__": model_class.__doc__}
    return type(f"Tied{model_class.__name__}", (model_class,), tied)


def shapes_of(model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter and buffer, by each of its names: what the release matches patterns with."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return {name: tuple(tensor.shape) for name, tensor in named}


def untie(model: Any) -> Any:
    """The same model with a copy of its own for every name under which a weight is known; changed in place."""
    seen: set[int] = set()
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) in seen:
                module._parameters[name] = parameter = torch.nn.Parameter(
                    parameter.detach().clone(), parameter.requires_grad
                )
            seen.add(id(parameter))
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = buffer.clone()
    return model


class Weights(NamedTuple):
    """What there is to tie in a model.

    free: shapes of the parameters that no part of it ties by itself; everything: of all that patterns are matched with;
    turned: the parameters of modules with a weight that lies the other way round than the bias says.
    """

    free: Shapes
    everything: Shapes
    turned: frozenset[str]


def weights_to_tie(name: str, config: Any) -> Weights:
    """What a case with an architecture and this config may tie."""
    made_by = upstream.model_class(catalogue.get(name).class_name)
    config = copy.deepcopy(upstream.config_for(made_by, config))
    if upstream.why_not_tied(config):
        return Weights({}, {}, frozenset())
    config.tie_word_embeddings = True
    model = subclass(made_by, ())(config)
    named = list(model.named_parameters(remove_duplicate=False))
    uses = Counter(id(parameter) for _, parameter in named)
    free = {path: tuple(p.shape) for path, p in named if uses[id(p)] == 1}
    turned = [path for path, module in model.named_modules(remove_duplicate=False) if _lies_turned(module)]
    return Weights(
        free, shapes_of(model), frozenset(f"{path}.{part}" for path in turned for part in ("weight", "bias"))
    )


def _lies_turned(module: torch.nn.Module) -> bool:
    weight, bias = module._parameters.get("weight"), module._parameters.get("bias")
    return weight is not None and bias is not None and weight.shape[:1] != bias.shape[:1]
