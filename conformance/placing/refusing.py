"""When an exception that placing a model raises is a clear refusal, and not a crash."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.placing.recipe import Recipe
from conformance.reference.placement import DoesNotFit, PlacementError
from conformance.simulation.ledger import OutOfMemory
from conformance.simulation.tensors import NAME

REFUSALS = (ValueError, NotImplementedError)
OF_PLACING = (DoesNotFit, PlacementError, OutOfMemory)  # raised for nothing else
ARGUMENTS = {"device_map", "max_memory", "offload_folder", "offload_dir"}


def refused_clearly(error: BaseException, recipe: Recipe) -> bool:
    """Whether an exception refuses a recipe, and says what of it.

    Both have to hold. Its type is one for refusing: a ValueError or a NotImplementedError, or an error of placing
    itself; any other RuntimeError is a crash, whatever it says. And it names, as a whole word, what is concerned: an
    argument of the loader, a module or a parameter of the model. An error of placing itself may name a device of the
    recipe instead: others say `cpu` when they break.
    """
    said = words(str(error))
    if isinstance(error, OF_PLACING):
        return bool(said & (ARGUMENTS | _parts(recipe) | _devices(recipe)))
    return isinstance(error, REFUSALS) and bool(said & (ARGUMENTS | _parts(recipe)))


def words(message: str) -> set[str]:
    """The names in a message, dotted ones and devices whole."""
    return {word.strip(".:") for word in re.findall(r"[\w.:]+", message)}


def _parts(recipe: Recipe) -> set[str]:
    """Modules and parameters, but for those with a name that may be any word, as `model` may."""
    kinds = (recipe.model.named_modules(), recipe.model.named_parameters())
    return {name for kind in kinds for name, _ in kind if is_telling(name)}


def is_telling(name: str) -> bool:
    """Whether a name in a message can only be that of a part of the model, and not any word."""
    return re.search(r"[._]", name) is not None


def _devices(recipe: Recipe) -> set[str]:
    named = recipe.device_map.values() if isinstance(recipe.device_map, Mapping) else ()
    given = (*named, *(recipe.max_memory or ()))
    return {f"{NAME}:{device}" if isinstance(device, int) else device for device in given}
