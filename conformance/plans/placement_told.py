"""A placement's plan by names: the paths that it takes, and what a failure may need of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.plans.placement import PlacementPlan

CIRCUMSTANCES = ("map of parts", "planned", "accelerators", "offloaded", "offloaded buffers", "in shards")
OFFLOADERS = ("cpu_offload", "disk_offload")  # which take the whole model, and one device to run it on
LEFT_ON_META = ("weights", "buffer")  # the damage that a decoding shows, too


def is_circumstance(need: str) -> bool:
    """Whether a need says where parts are, or in what form they were stored."""
    return need in CIRCUMSTANCES or need.startswith(("stored: ", "folder: "))


def events_of(plan: PlacementPlan) -> set[str]:
    """What the recipe asks for."""
    found = {f"model: {plan.model}", f"loader: {plan.loader}", f"map: {plan.map}", f"mode: {plan.mode}"}
    found |= {f"ids: {plan.ids}", f"stored: {plan.stored}", f"folder: {plan.folder}"}
    found |= {"decodes by itself"} if plan.by_itself else set()
    found |= {f"accelerators: {plan.hardware}"} if plan.accelerated else set()
    found |= {f"checkpoint: {name}" for name in _of_the_checkpoint(plan)}
    found |= {"limits: in words"} if plan.limits != "bytes" else set()
    found |= {f"mistake: {plan.mistake}"} if plan.mistake else set()
    return found | ({f"damage: {plan.damage}"} if plan.stranded is not None else set())


def _of_the_checkpoint(plan: PlacementPlan) -> list[str]:
    """What is not plain about loading and saving, but for how tied weights are stored."""
    flags = {"in shards": plan.shards, "loaded in another dtype": bool(plan.loaded_as)}
    flags |= {"devices as objects": plan.spelled == "devices", "saved over itself": bool(plan.saved_over)}
    return [name for name, on in flags.items() if on]


def traits_of(plan: PlacementPlan) -> tuple[str, ...]:
    """What a failure needs: the recipe without the numbers and the names of places.

    All ways to keep weights elsewhere than where they run are one: what needs one of them is met in each. So are
    all maps of several parts, but that the loader plans one is told beside it.
    """
    values = {
        "model": "own" if plan.own_generate else plan.model,
        "loader": "from_pretrained" if plan.loader in OFFLOADERS else plan.loader,
        "ids": plan.ids,
        "mode": plan.mode,
        "stored": plan.stored,
        "folder": plan.folder,
        "mistake": plan.mistake,
    }
    plainest = type(plan)()
    found = [f"{name}: {value}" for name, value in values.items() if value != getattr(plainest, name)]
    flags = {"map of parts": plan.map != plainest.map, "planned": plan.planned}
    flags |= {"decodes by itself": plan.own_generate}  # by which class, the scope of a finding says
    flags |= {"offloaded": plan.offloads or plan.runs_out, "limits in words": plan.limits != plainest.limits}
    flags |= {"split tied": plan.split_tied, "offloaded buffers": plan.offload_buffers}
    flags |= {"accelerators": plan.accelerated, "real accelerators": plan.accelerated and not plan.simulated}
    damaged = plan.stranded is not None
    left = damaged and plan.damage in LEFT_ON_META
    flags |= {"left on meta": left, f"damage: {plan.damage}": damaged and not left}
    flags |= dict.fromkeys(_of_the_checkpoint(plan), True)
    return (*found, *(name for name, on in flags.items() if on))
