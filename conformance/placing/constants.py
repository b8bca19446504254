"""What the reproducers of the placement family hold of a case: Python source by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance import upstream
from conformance.build import Scenario
from conformance.placing import models
from conformance.placing.calls import DENOISING, DRAFT
from conformance.placing.models import CANVAS
from conformance.placing.recipe import recipe_of
from conformance.plans.placement import PlacementPlan

INSTEAD: dict[str, dict[str, Any]] = {
    "plain": {},
    "static": {"settings": upstream.static_cache_settings()},
    "lookup": {"settings": {"do_sample": False, "prompt_lookup_num_tokens": DRAFT}},
    "beams": {"settings": {"do_sample": False, "num_beams": 2}},
    "embeddings": {"embeddings": True},
    "no inputs": {"no inputs": True},
    "assisted": {"assisted": True, "settings": {"do_sample": False}},
}


def constants(plan: PlacementPlan, scenario: Scenario) -> dict[str, str]:
    """Name → source of its value."""
    gemma = plan.model == "diffusion gemma"
    spec = scenario.case.model
    recipe = recipe_of(plan, models.make(scenario, plan.model), Path("saved"), Path("offloaded"))
    placing = {
        "loader": recipe.loader,
        "device_map": recipe.device_map,
        "max_memory": recipe.max_memory,
        "buffers": recipe.offload_buffers,
    }
    values: dict[str, Any] = {
        "WEIGHT_SEED": spec.weight_seed,
        "SCALE": spec.init_scale,
        "GEMMA": models.gemma_config(models.gemma_layers(scenario)) if gemma else {},
        "TIES": models.patterns_of(scenario, plan.model),
        "PLACING": placing,
        "IDS": plan.ids,
        "HOW": {"max_new_tokens": CANVAS, "max_denoising_steps": DENOISING} if gemma else INSTEAD[plan.mode],
    }
    return {name: repr(value) for name, value in values.items()}
