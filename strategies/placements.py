"""Placements: where the parts of a model go, over the CPU, the disk, `meta` and accelerators."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.plans.placement import Damage, PlacementPlan
from conformance.plans.placement_told import OFFLOADERS
from conformance.strategies.ranges import Span, rarely, whole_numbers

PLANNED = ("auto", "auto", "balanced", "sequential", "balanced_low_0")
PERCENT = st.integers(3, 130)
ROOMY = st.integers(150, 450)  # per cent on each accelerator: enough for the model, however it is shared out
MISTAKES = ("left out", "misspelt", "no such device")
STORED = ("once", "once", "once", "under targets", "every name", "bin")


@st.composite
def placements(draw: st.DrawFn, *, accelerators: Span = (0, 0), stranded: bool | None = None) -> PlacementPlan:
    """How a model is stored and loaded, with which map, and where its parts go; it decodes plainly.

    accelerators: a range for how many there are, none by default. stranded: whether a part is damaged before an audit,
    as one that is left on `meta`; None leaves that to the draw, once in eight. Shrinks to the whole model on the disk:
    on the CPU it would be placed nowhere, and the simplest case is the one that is tried on every type.
    """
    count = draw(whole_numbers("accelerators", accelerators, 0, 4))
    damaged = draw(rarely(True, False, one_in=8)) if stranded is None else stranded
    recipe = draw(recipes(accelerators=count))
    placed = PlacementPlan(
        **recipe,
        **(draw(checkpoints()) if recipe["loader"] == "from_pretrained" else {}),
        accelerators=count,
        offload_buffers=draw(rarely(True, False, one_in=6)),
    )
    return placed.replace(stranded=draw(st.integers(0, 15)), damage=draw(damages(placed))) if damaged else placed


def damages(placed: PlacementPlan) -> st.SearchStrategy[Damage]:
    """What can be damaged of what this plan places; whether the model has tied weights is not known here."""
    kinds: list[Damage] = ["weights", "weights", "buffer", "untied"]
    spare = placed.map != "whole" and placed.loader not in OFFLOADERS
    also: dict[Damage, bool] = {"moved": placed.accelerated and spare, "unmapped": spare}
    also["no copy"] = placed.offloads or placed.planned
    return st.sampled_from(kinds + [kind for kind, can in also.items() if can])


@st.composite
def recipes(draw: st.DrawFn, *, accelerators: int) -> dict[str, Any]:
    """Loader, map and places over the CPU, the disk and this many accelerators; shrinks to the whole on the disk."""
    devices = [f"sim:{index}" for index in range(accelerators)]
    loader = draw(st.sampled_from(("from_pretrained", "from_pretrained", "dispatch_model", "dispatch_model")))
    recipe = {"loader": loader, "map": "whole", "places": ("cpu",)}
    if draw(rarely(True, False, one_in=8)):
        offloads = draw(st.sampled_from(("cpu_offload", "disk_offload")))
        return {**recipe, "loader": offloads, "places": (devices or ["cpu"])[:1]}
    if draw(st.booleans()) and loader == "from_pretrained":
        share = ROOMY if accelerators and draw(rarely(True, False, one_in=4)) else PERCENT
        budget = draw(st.tuples(*[share] * accelerators, PERCENT))
        limits = draw(rarely(draw(st.sampled_from(("KB", "KiB"))), "bytes", one_in=5))
        return {**recipe, "map": draw(st.sampled_from(PLANNED)), "budget": budget, "limits": limits}
    place = st.sampled_from(("cpu", "disk", *devices, *devices))
    if draw(st.sampled_from(("one place", "parts", "parts"))) == "one place":
        return {**recipe, "places": (draw(st.sampled_from(("disk", *devices))),)}
    return {
        **recipe,
        "map": "parts",
        "places": tuple(draw(st.lists(place, min_size=2, max_size=6))),
        "split_tied": draw(rarely(True, False, one_in=3)),
        "mistake": draw(rarely(draw(st.sampled_from(MISTAKES)), "", one_in=8)),
    }


@st.composite
def checkpoints(draw: st.DrawFn) -> dict[str, Any]:
    """In which form a checkpoint is, how it is loaded, and what is saved again; shrinks to one plain file."""
    stored = draw(st.sampled_from(STORED))
    own_file = stored == "bin"  # what is offloaded of it is written anew, into the folder
    return {
        "stored": stored,
        "folder": draw(
            rarely(draw(st.sampled_from(("shared", "shared", "none"))), "its own", one_in=2 if own_file else 6)
        ),
        "shards": draw(rarely(True, False, one_in=3)),
        "loaded_as": draw(rarely(draw(st.sampled_from(("float16", "bfloat16"))), "", one_in=6)),
        "spelled": draw(rarely("devices", "words", one_in=5)),
        "saved_over": draw(rarely(draw(st.sampled_from(("whole", "shards"))), "", one_in=4)),
    }
