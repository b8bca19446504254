"""Random numbers of simulated devices: each has a generator of its own, seeded as the CPU's is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from conformance.simulation.ledger import DEVICES, LEDGER

_GENERATORS: dict[int, torch.Generator] = {}


def generator(device: int) -> torch.Generator:
    """The random generator of a simulated device."""
    if device not in _GENERATORS:
        _GENERATORS[device] = torch.Generator().manual_seed(torch.initial_seed())
    return _GENERATORS[device]


def seed_all(seed: int) -> None:
    """Seed the generator of every simulated device."""
    for device in range(DEVICES):
        _GENERATORS[device] = torch.Generator().manual_seed(seed)


@cache
def is_random(func: Any) -> bool:
    """Whether an op may draw."""
    return torch.Tag.nondeterministic_seeded in func.tags


def run(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device: int) -> Any:
    """A random op on the CPU's kernels, from the generator of the device; one of the CPU's is refused, as by CUDA."""
    if kwargs.get("generator") is not None:
        raise RuntimeError(
            f"Expected a 'sim' device type for generator but found '{kwargs['generator'].device.type}'. Simulated "
            "devices have no generator but their own; torch.manual_seed and torch.sim.manual_seed seed it"
        )
    LEDGER.draws[device] += 1
    if _takes_generator(func):
        return func(*args, **{**kwargs, "generator": generator(device)})
    # `randint`, `rand_like`, dropout: they know the default generator only.
    own, default = generator(device), torch.default_generator
    kept = default.get_state()
    default.set_state(own.get_state())
    try:
        return func(*args, **kwargs)
    finally:
        own.set_state(default.get_state())
        default.set_state(kept)


@cache
def _takes_generator(func: Any) -> bool:
    return any(argument.name == "generator" for argument in func._schema.arguments)
