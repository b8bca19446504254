"""Cutting the per-layer lists of a config: all of them with the same indices, so that layers stay whole.

A kind of layer is one distinct combination of everything that a config lists per layer. Lists of layer *indices*
(`mlp_only_layers`, `hybrid_layer_ids`) count as one more column, which says whether a layer is in the list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.architectures.overrides import Json
from conformance.architectures.sizes import MAX_LAYERS, Sizes

INDEX_LIST = re.compile(
    r"\w+_(layer_ids|layers_indices|layer_indices|idxs)|mlp_only_layers|moe_layers|\w+_attention_layers"
)
ATTENDS = re.compile(r"hybrid|(?<!linear_)attention")
OLD_SPELLING = {"linear_attention": "mamba", "full_attention": "attention"}
DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")


@dataclass(frozen=True)
class Kinds:
    """The distinct kinds of layer of one config: a row per kind, a column per per-layer attribute."""

    columns: tuple[str, ...]
    index_columns: frozenset[str]
    rows: tuple[tuple[Json, ...], ...]

    def plan(self, sizes: Sizes) -> tuple[int, ...]:
        """Indices of kinds, one per layer: the plan asked for, or every kind once and on until there are enough."""
        count = max(sizes.layers, min(len(self.rows), MAX_LAYERS))
        return tuple(index % len(self.rows) for index in sizes.layer_plan or range(count))

    def with_attention(self, plan: tuple[int, ...]) -> tuple[int, ...]:
        """The plan, its last layer changed if need be: a cache takes its length from a layer that attends."""
        attends = [index for index, row in enumerate(self.rows) if _attends(self.columns, row)]
        return plan if not attends or set(attends) & set(plan) else (*plan[:-1], attends[0])

    def settings(self, plan: Sequence[int]) -> dict[str, list[Json]]:
        """The per-layer attributes of a model whose layers follow `plan`."""
        cut: dict[str, list[Json]] = {}
        for position, column in enumerate(self.columns):
            values = [self.rows[index][position] for index in plan]
            is_index = column in self.index_columns
            cut[column] = [layer for layer, member in enumerate(values) if member] if is_index else values
        return cut


def depth(values: Mapping[str, object]) -> int:
    """How many layers a default config has; 0 when it does not say."""
    for name in DEPTH:
        value = values.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return max(
        (len(v) for k, v in values.items() if k.endswith("layers_block_type") and isinstance(v, list)), default=0
    )


def kinds(values: Mapping[str, object]) -> Kinds | None:
    """The kinds of layer of a default config, in the order of their first layer; None without per-layer lists."""
    count = depth(values)
    columns: dict[str, list[Json]] = {}
    index_columns = set()
    for name, value in values.items():
        if not isinstance(value, list):
            continue
        if INDEX_LIST.fullmatch(name) and all(isinstance(item, int) for item in value):
            index_columns.add(name)
            columns[name] = [layer in value for layer in range(count)]
        elif len(value) == count > 1:
            columns[name] = value
    return _distinct(columns, frozenset(index_columns)) if columns and count else None


def table(columns: Mapping[str, Sequence[Json]], defaults: Mapping[str, object]) -> Kinds:
    """The kinds given by hand, one per position of the lists, in the spelling that the default config uses."""
    index_columns = frozenset(name for name in columns if INDEX_LIST.fullmatch(name))
    spelled = (_spelled(column, defaults.get(name)) for name, column in columns.items())
    return Kinds(tuple(columns), index_columns, tuple(zip(*spelled, strict=True)))


def _spelled(column: Sequence[Json], default: object) -> Sequence[Json]:
    old = isinstance(default, list) and any(value in default for value in OLD_SPELLING.values())
    return [OLD_SPELLING.get(str(value), value) for value in column] if old else column


def _attends(columns: Sequence[str], row: Sequence[Json]) -> bool:
    if any(value is True and "att" in column for column, value in zip(columns, row, strict=True)):
        return True
    return any(isinstance(value, str) and ATTENDS.search(value) for value in row)


def _distinct(columns: Mapping[str, Sequence[object]], index_columns: frozenset[str]) -> Kinds:
    rows: dict[str, tuple[Json, ...]] = {}
    for row in zip(*columns.values(), strict=True):
        rows.setdefault(json.dumps(row), row)
    return Kinds(tuple(columns), index_columns, tuple(rows.values()))
