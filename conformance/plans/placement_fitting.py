"""Fields of a placement's plan that nothing reads beside the others: told in a line, and put back at their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from conformance.plans.placement_told import OFFLOADERS

if TYPE_CHECKING:
    from conformance.plans.placement import PlacementPlan

Kind = TypeVar("Kind", bound="PlacementPlan")
READ_FROM_A_CHECKPOINT = ("stored", "loaded_as", "saved_over")


def idle(plan: PlacementPlan) -> Iterator[tuple[str, str]]:
    """Each field that says what another one keeps from being done → a line that names both."""
    if plan.by_itself and plan.model != "own":
        yield "model", f"plan.model is {plan.model}, and plan.by_itself is another model; valid with it: own"
    if plan.own_generate and plan.mode != "plain":
        yield (
            "mode",
            f"plan.mode is {plan.mode}, and {plan.model_class} decodes in a way of its own; valid with it: plain",
        )
    yield from _beside_the_loader(plan)
    yield from _beside_the_map(plan)
    if plan.damage != "weights" and (lacking := _undamaged(plan)):
        yield "damage", f"plan.damage is {plan.damage}, and {lacking}"


def _beside_the_loader(plan: PlacementPlan) -> Iterator[tuple[str, str]]:
    plainest = type(plan)()
    for name in READ_FROM_A_CHECKPOINT if plan.loader != "from_pretrained" else ():
        if getattr(plan, name) != getattr(plainest, name):
            yield name, f"plan.{name} is of no effect with {plan.loader}, which reads no checkpoint"
    if plan.folder != "its own" and plan.loader != "from_pretrained":
        yield "folder", f"plan.folder is {plan.folder}, and {plan.loader} is given one for itself; valid: its own"


def _beside_the_map(plan: PlacementPlan) -> Iterator[tuple[str, str]]:
    if plan.split_tied and plan.map != "parts":
        yield "split_tied", f"plan.split_tied is of no effect with plan.map {plan.map}; valid for it: parts"
    if plan.mistake and plan.map != "parts":
        yield "mistake", f"plan.mistake is one in a map of parts, and plan.map is {plan.map}"
    if plan.limits != "bytes" and not plan.planned:
        yield (
            "limits",
            f"plan.limits is {plan.limits}, and plan.map {plan.map} is planned within no limits; valid: bytes",
        )
    for place in plan.used:
        if place.startswith("sim:") and int(place[4:]) >= plan.accelerators:
            yield "places", f"plan.places names {place}, and plan.accelerators is {plan.accelerators}"


def _undamaged(plan: PlacementPlan) -> str:
    """Why there is nothing in a recipe that is damaged so; empty where there may be."""
    if plan.stranded is None:
        return "plan.stranded does not say which one"
    if plan.damage == "moved" and not plan.accelerated:
        return "there is one device only: plan.accelerators is 0"
    if plan.damage == "unmapped" and (plan.loader in OFFLOADERS or plan.map == "whole"):
        return f"the map has no entry to spare: plan.loader is {plan.loader}, plan.map {plan.map}"
    if plan.damage == "no copy" and not (plan.offloads or plan.planned):
        return "no hook has copies: the recipe offloads nothing"
    return ""


def fitted(plan: Kind) -> Kind:
    """The same plan without them; places on accelerators that are not there are on those that are, or on the CPU."""
    while found := next(idle(plan), None):
        name = found[0]
        value = _present(plan) if name == "places" else getattr(type(plan)(), name)
        plan = plan.replace(**{name: value})
    return plan


def _present(plan: PlacementPlan) -> tuple[str, ...]:
    count = plan.accelerators
    there = "sim:{}" if count else "cpu"
    return tuple(there.format(int(p[4:]) % max(1, count)) if p.startswith("sim:") else p for p in plan.places)
