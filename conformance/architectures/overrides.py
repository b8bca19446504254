"""What the rules over names cannot know, per type: `overrides.json`, each entry with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Change:
    """Departures from the generic rules; attribute names are dotted from the top of the config."""

    set: Mapping[str, Json] = field(default_factory=dict)  # fixed values
    formulas: Mapping[str, str] = field(default_factory=dict)  # values that follow from `Sizes`; "" keeps the default
    layers: Mapping[str, list[Json]] = field(default_factory=dict)  # the kinds of layer, one per position
    starts_with: int | None = None  # a kind that has to come first
    ends_with: int | None = None  # a kind that has to come last
    min_layers: int = 1  # for kinds of layer that recur with a period
    repeat_plan: int = 1  # the later repetitions are the layers that share


@dataclass(frozen=True)
class Override:
    """Everything known by hand about one architecture. The facts about running it are reasons, by name of the fact."""

    always: Change = Change()
    switches: Mapping[str, Change] = field(default_factory=dict)  # by switch of `Sizes`
    arguments: frozenset[str] = frozenset()  # constructor arguments that are no attributes
    facts: Mapping[str, Json] = field(default_factory=dict)


def _change(entry: Mapping[str, Json]) -> Change:
    known = Change.__dataclass_fields__
    return Change(**{name: value for name, value in entry.items() if name in known})  # type: ignore[arg-type]


@cache
def _all() -> dict[str, dict[str, Json]]:
    text = resources.files("conformance.architectures").joinpath("overrides.json").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Json]] = json.loads(text)
    return entries


@cache
def override(name: str) -> Override:
    """The entry of an architecture: its own, or else that of its model type; an empty one where neither exists."""
    entry = _all().get(name) or _all().get(name.partition(":")[0]) or {}
    switches, arguments, facts = entry.get("switches", {}), entry.get("arguments", []), entry.get("facts", {})
    if not isinstance(switches, dict) or not isinstance(arguments, list) or not isinstance(facts, dict):
        raise TypeError(f"overrides.json: {name}: switches and facts are objects, arguments a list")
    changes = {switch: _change(change) for switch, change in switches.items() if isinstance(change, dict)}
    return Override(_change(entry), changes, frozenset(str(a) for a in arguments), facts)
