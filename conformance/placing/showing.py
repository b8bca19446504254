"""A placement in lines for a reader: what was asked for, where each part is, and what that came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.errors import NotOffered
from conformance.placing.damaging import damage, of_a_placed
from conformance.placing.placed import Placed
from conformance.placing.recipe import Recipe, size_of
from conformance.placing.world import World
from conformance.plans.placement_told import LEFT_ON_META
from conformance.reference.tying import named_tensors

INDENT = "    "


def recipe_lines(recipe: Recipe) -> Iterator[str]:
    """What a subject was asked to do with the model."""
    model = recipe.model
    yield f"model: {type(model).__name__}, {size_of(model)} bytes of weights, each once"
    yield f"loader: {recipe.loader}, dtype {str(recipe.dtype).removeprefix('torch.')}" + (
        ", buffers offloaded" if recipe.offload_buffers else ""
    )
    if isinstance(recipe.device_map, str):
        limits = ", ".join(f"{device}: {size}" for device, size in (recipe.max_memory or {}).items())
        yield f"map asked for: {recipe.device_map}, within bytes of {limits or 'no limit'}"
        return
    yield "map asked for:" + (" (told by torch.device)" if recipe.as_devices else "")
    yield from (f"{INDENT}{name or 'the whole model'}: {place}" for name, place in recipe.device_map.items())


def placed_lines(world: World) -> Iterator[str]:
    """Where the parts of the model are, and what an audit says; or what placing it raised."""
    try:
        if world.plan.stranded is not None:
            yield from _damaged_lines(world)
            return
        placed = world.placed
    except NotOffered as error:
        yield f"not offered: {error}"
        return
    if placed.crash is not None:
        yield f"placing it {'was refused' if placed.refused else 'raised'}: {placed.crash}"
        return
    found = getattr(placed.model, "hf_device_map", None)
    if isinstance(found, Mapping):
        yield "hf_device_map:"
        yield from (f"{INDENT}{name or 'the whole model'}: {place}" for name, place in found.items())
    else:
        yield "hf_device_map: none"
    yield "weights and buffers are, by module:"
    yield from (f"{INDENT}{name or 'the model itself'}: {places}" for name, places in _by_module(placed).items())
    yield f"audit: {'; '.join(str(placed.report).splitlines())}"


def _damaged_lines(world: World) -> Iterator[str]:
    """What is damaged on purpose, and what decoding comes to then."""
    plan = world.plan
    if of_a_placed(plan) and world.placed.crash is not None:
        yield "nothing is damaged: it is not placed"
        return
    with world.present():
        model = world.placed_anew("offloaded, shown") if of_a_placed(plan) else world.copied()
        lost = damage(plan, model)
    if isinstance(lost, str):
        yield f"nothing is damaged: {lost}"
        return
    left = "left on meta on purpose, with nothing that brings it"
    yield f"{left if plan.damage in LEFT_ON_META else f'damaged on purpose, {plan.damage}'}: {', '.join(lost)}"
    crash = world.outcome(Placed(model)).crash
    yield f"decoding then {'raises ' + str(crash) if crash else 'raises nothing'}"


def _by_module(placed: Placed) -> dict[str, str]:
    """Module → where its own weights and buffers are; modules with weights in one place and of one parent are one."""
    stranded, found = placed.report.stranded, dict[str, set[str]]()
    for name, tensor in named_tensors(placed.model).items():
        place = "STRANDED on meta" if name in stranded else "offloaded" if tensor.is_meta else str(tensor.device)
        found.setdefault(name.rpartition(".")[0], set()).add(place)
    return {name: ", ".join(sorted(places)) for name, places in _joined(found).items()}


def _joined(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same with every module of which all parts are alike told as a whole."""
    told: dict[str, set[str]] = {}
    for name in found:
        whole = next((part for part in _prefixes(name) if len({frozenset(p) for p in _within(found, part)}) == 1), name)
        told[whole] = found[name]
    return told


def _prefixes(name: str) -> Iterator[str]:
    """The modules that a module is in, from the outermost on, and itself."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(len(parts) + 1))


def _within(found: Mapping[str, Any], module: str) -> Iterator[set[str]]:
    yield from (p for name, p in found.items() if not module or name == module or name.startswith(f"{module}."))
