"""The accelerators of a recipe: simulated ones, or real ones of a kind, which the machine may have or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

from conformance import upstream
from conformance.compare import NOISY_BOUND
from conformance.outcome import rng_digest
from conformance.plans.placement import PlacementPlan
from conformance.seeding import seed_everything
from conformance.simulation import accelerator
from conformance.simulation.tensors import NAME


def why_not(plan: PlacementPlan) -> str | None:
    """Why this machine cannot follow a recipe, or None."""
    named = max((int(place[4:]) for place in plan.used if place.startswith("sim:")), default=-1)
    if named >= plan.accelerators:
        return "the recipe names accelerators that are not present in it"
    if not plan.accelerated:
        return None
    if plan.hardware == NAME:
        return accelerator.why_not()
    module = torch.get_device_module(plan.hardware)
    count = module.device_count() if module.is_available() else 0
    return None if count >= plan.accelerators else f"the machine has {count} of the {plan.hardware} devices it asks for"


@contextmanager
def present(plan: PlacementPlan) -> Iterator[None]:
    """The recipe's devices are there inside; real ones always are."""
    if not plan.simulated:
        yield
        return
    with accelerator.devices(plan.accelerators), upstream.file_reader_knows(NAME):
        yield


def draws_like_the_cpu(plan: PlacementPlan) -> bool:
    """Whether the devices draw from the same seed what the CPU draws; real ones have generators of other kinds."""
    return plan.simulated or not plan.accelerated


def bound_of(plan: PlacementPlan, bound: float) -> float:
    """How far logits may be off on these devices: real ones have kernels of their own."""
    return bound if plan.simulated or not plan.accelerated else max(bound, NOISY_BOUND)


@lru_cache(maxsize=64)
def rng_seeded(seed: int) -> str:
    """The digest of the CPU's generator when it was seeded so and nothing was drawn since."""
    with torch.random.fork_rng(devices=[]):
        seed_everything(seed)
        return rng_digest()
