"""Placements: where the parts of a model go, over the CPU, the disk, `meta` and accelerators."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.plans.placement import PlacementPlan
from conformance.strategies.ranges import Span, rarely, whole_numbers

PLANNED = ("auto", "auto", "balanced", "sequential", "balanced_low_0")
PERCENT = st.integers(3, 130)


@st.composite
def placements(draw: st.DrawFn, *, accelerators: Span = (0, 0), stranded: bool | None = None) -> PlacementPlan:
    """How a model is loaded, with which map, and where its parts go; it decodes plainly.

    accelerators: a range for how many there are, none by default. stranded: whether a part is left on `meta` with
    nothing that brings it; None leaves that to the draw, once in twelve. Shrinks to the whole model on the CPU.
    """
    count = draw(whole_numbers("accelerators", accelerators, 0, 4))
    left = draw(rarely(True, False, one_in=12)) if stranded is None else stranded
    return PlacementPlan(
        **draw(recipes(accelerators=count)),
        accelerators=count,
        offload_buffers=draw(rarely(True, False, one_in=6)),
        stranded=draw(st.integers(0, 15)) if left else None,
    )


@st.composite
def recipes(draw: st.DrawFn, *, accelerators: int) -> dict[str, Any]:
    """Loader, map and places over the CPU, the disk and this many accelerators; shrinks to the whole on the CPU."""
    devices = [f"sim:{index}" for index in range(accelerators)]
    loader = draw(st.sampled_from(("from_pretrained", "from_pretrained", "dispatch_model", "dispatch_model")))
    recipe = {"loader": loader, "map": "whole", "places": ("cpu",)}
    if draw(rarely(True, False, one_in=8)):
        offloads = draw(st.sampled_from(("cpu_offload", "disk_offload")))
        return {**recipe, "loader": offloads, "places": (devices or ["cpu"])[:1]}
    if draw(st.booleans()) and loader == "from_pretrained":
        budget = draw(st.tuples(*[PERCENT] * (accelerators + 1)))
        return {**recipe, "map": draw(st.sampled_from(PLANNED)), "budget": budget}
    place = st.sampled_from(("cpu", "disk", *devices, *devices))
    if draw(rarely(True, False, one_in=3)):
        return {**recipe, "places": (draw(st.sampled_from(("disk", *devices))),)}
    return {
        **recipe,
        "map": "parts",
        "places": tuple(draw(st.lists(place, min_size=2, max_size=6))),
        "split_tied": draw(rarely(True, False, one_in=3)),
    }
