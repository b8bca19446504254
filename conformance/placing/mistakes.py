"""A device map with one mistake in it, as a caller makes one: what is wrong, and the names that tell of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformance.placing.recipe import Recipe
from conformance.placing.refusing import is_telling, words
from conformance.placing.right_map import place_in

NO_DEVICE = "no_such_device"
Map = Mapping[str, Any]


@dataclass(frozen=True)
class Mistake:
    """A wrong map, and what an error may name of it: any of them tells the caller where to look."""

    device_map: Map
    names: frozenset[str]


def mistaken(recipe: Recipe, kind: str, number: int) -> Mistake | str:
    """The map of a recipe with a mistake in one of its entries, by number; or why it has none to make it in."""
    device_map = recipe.device_map
    assert isinstance(device_map, Mapping)
    held = [entry for entry in device_map if _inside(recipe, entry)]
    if len(held) < 2:
        return "the map has one entry or none"
    entry = held[number % len(held)]
    wrong, named = KINDS[kind](device_map, entry)
    return Mistake(wrong, frozenset({*filter(is_telling, named), *_inside(recipe, entry)}))


def of_it(recipe: Recipe, mistake: Mistake) -> Recipe:
    """The recipe with the wrong map."""
    return replace(recipe, device_map=dict(mistake.device_map))


def told_by(error: BaseException, mistake: Mistake) -> bool:
    """Whether an error names what is wrong."""
    return bool(words(str(error)) & mistake.names)


def _inside(recipe: Recipe, entry: str) -> list[str]:
    """What is saved of a model and only this entry of its map covers, and the modules that hold it."""
    device_map: Any = recipe.device_map
    others = {name: place for name, place in device_map.items() if name != entry}
    names = recipe.model.state_dict()
    found = [name for name in names if place_in({entry: 0}, name) is not None and place_in(others, name) is None]
    return [*found, *{module for name in found if is_telling(module := name.rpartition(".")[0])}]


def _left_out(device_map: Map, entry: str) -> tuple[Map, list[str]]:
    return {name: place for name, place in device_map.items() if name != entry}, [entry]


def _misspelt(device_map: Map, entry: str) -> tuple[Map, list[str]]:
    wrong = f"{entry}_"
    return {wrong if name == entry else name: place for name, place in device_map.items()}, [entry, wrong]


def _no_such_device(device_map: Map, entry: str) -> tuple[Map, list[str]]:
    return {**device_map, entry: NO_DEVICE}, [entry, NO_DEVICE]


KINDS: dict[str, Callable[[Map, str], tuple[Map, list[str]]]] = {
    "left out": _left_out,
    "misspelt": _misspelt,
    "no such device": _no_such_device,
}
