"""Planners whose maps are wrong. All else is the reference's, so that whoever made the map is told from the release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.reference.tying import tied_groups
from conformance.subjects.reference import Reference


class Planner(Reference):
    """Plans as the reference does, then spoils the map."""

    name = "planner"

    def planned(self, recipe: Any) -> Any:
        right = super().planned(recipe)
        return right if right is recipe else replace(right, device_map=self.spoilt(recipe, dict(right.device_map)))

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """What this one makes of a right map."""
        return right


def _elsewhere(recipe: Any, place: Any) -> Any:
    """Another place that may hold weights: an accelerator where there is one, else the disk."""
    others = [device for device in recipe.max_memory if device not in (place, "cpu")]
    return others[0] if others else "disk"


class SplitsABlock(Planner):
    """Puts the first part of the first block that must not be split somewhere else than the rest."""

    name = "splits-a-block"

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:
        whole = set(recipe.model._no_split_modules)
        for name, module in recipe.model.named_modules():
            if type(module).__name__ in whole and name in right:
                place, parts = right.pop(name), [f"{name}.{part}" for part, _ in module.named_children()]
                return {**right, **dict.fromkeys(parts, place), parts[0]: _elsewhere(recipe, place)}
        return right


class SplitsATiedGroup(Planner):
    """Puts the last name of the first tied group somewhere else than the first."""

    name = "splits-a-tied-group"

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:
        for group in tied_groups(recipe.model)[:1]:
            holder = next(name for name in right if group[-1] == name or group[-1].startswith(f"{name}."))
            return {**right, holder: _elsewhere(recipe, right[holder])}
        return right


class OffloadsWhatFits(Planner):
    """Puts the last part on the disk, however much room there is."""

    name = "offloads-what-fits"

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        return {**right, list(right)[-1]: "disk"}


class ForgetsAModule(Planner):
    """Leaves the last module out of the map."""

    name = "forgets-a-module"

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        return dict([*right.items()][:-1])


class Overfills(Planner):
    """Puts everything on the first device, whatever it may hold."""

    name = "overfills"

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        return {"": next(iter(recipe.max_memory))}


class TakesEntriesForPrefixes(Planner):
    """Leaves out what another entry is the beginning of, though that ends inside a name."""

    name = "takes-entries-for-prefixes"

    def spoilt(self, recipe: Any, right: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        return {name: place for name, place in right.items() if not any(_begins(other, name) for other in right)}


def _begins(one: str, other: str) -> bool:
    return one != other and other.startswith(one)
