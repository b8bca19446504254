"""What the `placement` family adds to a case: a recipe of where the parts of the model go.

Half of the recipes know the CPU, the disk and `meta` only; the others have accelerators, nearly all of them simulated.
Which of them a machine has plays no part: a recipe that it cannot follow is not applicable.
"""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from conformance.architectures.own_generate import recipes
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.placement import MECHANISMS, PlacementPlan
from conformance.strategies.placements import placements
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings as every_settings

GEMMA = "diffusion gemma"
# One is the same whatever the type: most draws are the type's own.
MODELS = ("own", "own", "own", "own", "tied embeddings", "tied blocks", "tied parts", GEMMA)
TIED = ("tied embeddings", "tied blocks", "tied parts", GEMMA)
MODES = (
    "plain", "plain", "plain", "static", "lookup", "beams", "embeddings", "no inputs", "assisted", "chunked",
    "offloaded cache",
)  # fmt: skip
# What goes wrong where `model.device` is `meta`, and what needs layers on several devices.
ON_THE_DISK = ("plain", "lookup", "lookup", "no inputs", "no inputs", "static", "beams", "embeddings")
SEVERAL = (*MODES, *(MECHANISMS * 4))
WITHOUT_IMAGES = ("embeddings", "no inputs", "crop")  # they take the place of a prompt, or feed tokens by themselves
REAL = ("cuda", "mps", "xpu")
IMAGES = True  # prompts hold images or sound where the type takes some
# A part in the wrong place shows at once, and every operation on a simulated device costs.
settings = partial(every_settings, new_tokens=(1, 4))


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> PlacementPlan:
    """A recipe for this model; shrinks to the whole model on the disk, plain decoding."""
    accelerators = draw(st.sampled_from((0, 0, 0, 1, 2, 2, 3)))
    placed = draw(placements(accelerators=(accelerators, accelerators)))
    on_the_disk = not accelerators and placed.places[:1] == ("disk",) and placed.map == "whole"
    modes: tuple[str, ...] = ON_THE_DISK if on_the_disk else SEVERAL if accelerators > 1 else MODES
    by_itself = not accelerators and not prompt.images and draw(rarely(True, False, one_in=12))
    kinds: tuple[str, ...] = ("own",) if by_itself else TIED if placed.damage == "untied" else MODELS
    if prompt.images:  # which only the case's own type sees
        modes = tuple(mode for mode in modes if mode not in WITHOUT_IMAGES)
        kinds = tuple(kind for kind in kinds if kind != GEMMA)
    kind = draw(st.sampled_from(kinds))
    return placed.replace(
        by_itself=draw(st.sampled_from(sorted(recipes()))) if by_itself else "",
        model=kind,
        hardware=draw(st.sampled_from(REAL)) if accelerators and draw(rarely(True, False, one_in=24)) else "sim",
        ids=draw(rarely("model.device", "embeddings", one_in=2 if on_the_disk else 4)),
        mode="plain" if by_itself or kind == GEMMA else draw(st.sampled_from(modes)),
    )
