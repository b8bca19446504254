"""What the `placement` family adds to a case: a recipe of where the parts of the model go.

Half of the recipes know the CPU, the disk and `meta` only; the others have accelerators, nearly all of them simulated.
Which of them a machine has plays no part: a recipe that it cannot follow is not applicable.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from conformance.architectures.own_generate import recipes
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.placement import MECHANISMS, PlacementPlan
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings as every_settings

GEMMA = "diffusion gemma"
MODELS = ("own", "own", "own", "tied embeddings", "tied blocks", "tied parts", GEMMA, GEMMA)
MODES = (
    "plain", "plain", "plain", "static", "lookup", "beams", "embeddings", "no inputs", "assisted", "chunked",
    "offloaded cache",
)  # fmt: skip
# What goes wrong where `model.device` is `meta`, and what needs layers on several devices.
ON_THE_DISK = ("plain", "lookup", "lookup", "no inputs", "no inputs", "static", "beams", "embeddings")
SEVERAL = (*MODES, *(MECHANISMS * 4))
PLANNED = ("auto", "auto", "balanced", "sequential", "balanced_low_0")
REAL = ("cuda", "mps", "xpu")
PERCENT = st.integers(3, 130)
# A part in the wrong place shows at once, and every operation on a simulated device costs.
settings = partial(every_settings, new_tokens=(1, 4))


@st.composite
def placements(draw: st.DrawFn, *, accelerators: int) -> dict[str, Any]:
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


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> PlacementPlan:
    """A recipe for this model; shrinks to the whole model on the CPU, plain decoding."""
    accelerators = draw(st.sampled_from((0, 0, 0, 1, 2, 2, 3)))
    recipe = draw(placements(accelerators=accelerators))
    on_the_disk = not accelerators and recipe["places"][:1] == ("disk",) and recipe["map"] == "whole"
    modes = ON_THE_DISK if on_the_disk else SEVERAL if accelerators > 1 else MODES
    by_itself = not accelerators and draw(rarely(True, False, one_in=8))
    return PlacementPlan(
        **recipe,
        by_itself=draw(st.sampled_from(sorted(recipes()))) if by_itself else "",
        model=draw(st.sampled_from(MODELS)),
        accelerators=accelerators,
        hardware=draw(st.sampled_from(REAL)) if accelerators and draw(rarely(True, False, one_in=24)) else "sim",
        offload_buffers=draw(rarely(True, False, one_in=6)),
        ids=draw(rarely("model.device", "embeddings", one_in=2 if on_the_disk else 4)),
        mode=draw(st.sampled_from(modes)),
        stranded=draw(st.integers(0, 15)) if draw(rarely(True, False, one_in=12)) else None,
    )
