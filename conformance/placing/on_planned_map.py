"""The installed loader on a map that a subject plans: what it cannot do there is its own fault, if the map is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance import interruption
from conformance.errors import NotOffered
from conformance.placing.given import a_recipe
from conformance.placing.leaving import with_own_dicts
from conformance.placing.loaders import place_installed
from conformance.placing.recipe import Recipe
from conformance.placing.right_map import wrong_in
from conformance.subjects import Subject
from conformance.subjects.installed import Installed

Planner = Callable[[Recipe], Recipe]


def on_its_own_map(subject: Subject) -> tuple[Installed, ...]:
    """The release on the maps that a subject plans: what it cannot do there is no fault of the subject's.

    An excuse for what loader, models and hooks do on a map, and not for what the map or an audit is.
    """
    planner = getattr(subject, "planned", None)
    return () if planner is None else (InstalledOnPlannedMap(planner),)


def wrong_plan(asked: Recipe, planned: Recipe) -> str | None:
    """What is wrong with the map that was planned for a recipe that has none, or None."""
    if isinstance(asked.device_map, str) and not isinstance(planned.device_map, str):
        return wrong_in(asked.model, planned.device_map, asked.limits)
    return None


class InstalledOnPlannedMap(Installed):
    """As the installed subject, but for the map of `planner`: it shares nothing else with the subject that plans."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner

    def place(self, recipe: Recipe) -> Any:
        """The placed model. Raises NotOffered where it would excuse nothing, else whatever the loader raises."""
        try:
            planned = a_recipe(self.planner(with_own_dicts(recipe)), "planned")
        except BaseException as error:
            interruption.let_through(error)
            raise NotOffered("the planner itself raises") from error
        if planned.device_map == recipe.device_map:
            raise NotOffered("the map is the case's own, and the installed subject is run on that")
        if reason := wrong_plan(recipe, planned):
            raise NotOffered(f"the planned map is wrong: {reason}")
        return place_installed(planned)
