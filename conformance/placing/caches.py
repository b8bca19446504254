"""Where the layers of a returned cache lie, and where the layers of the model that fill them run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from conformance import upstream
from conformance.placing.whereabouts import Where
from conformance.placing.world import World
from conformance.reference.bringing import same_device
from conformance.snapshots import flatten

STATES = 3  # dimensions that keys, values and states have at least; fewer have counters and positions


def runs_on(model: Any, where: Mapping[str, Where]) -> dict[int, set[torch.device]]:
    """Number of a layer → the devices on which modules that know it as theirs run, by their weights."""
    found: dict[int, set[torch.device]] = defaultdict(set)
    for path, module in model.named_modules():
        number = getattr(module, "layer_idx", None)
        if isinstance(number, int):
            inside = (one for name, one in where.items() if name.startswith(f"{path}.") and one.saved)
            found[number] |= {device for one in inside if (device := one.brought or one.held) is not None}
    return {number: devices for number, devices in found.items() if devices}


def lies_on(cache: Any) -> Iterator[tuple[int, str, torch.device]]:
    """Of every state in a cache, of a decoder or of both parts of one with an encoder: layer, name and device."""
    for part in ("self_attention_cache", "cross_attention_cache"):
        if hasattr(cache, part):
            yield from lies_on(getattr(cache, part))
    for number, layer in enumerate(getattr(cache, "layers", None) or ()):
        for name, leaf in flatten(vars(layer)):
            if isinstance(leaf, torch.Tensor) and leaf.dim() >= STATES and leaf.numel():
                yield number, name.lstrip("."), leaf.device


def elsewhere(model: Any, where: Mapping[str, Where], cache: Any) -> str | None:
    """The first state of a cache that is on no device on which its layer runs, or None."""
    runs = runs_on(model, where)
    for number, name, device in lies_on(cache):
        if number in runs and not any(same_device(device, one) for one in runs[number]):
            told = " and ".join(sorted(map(str, runs[number])))
            return f"{name} of layer {number} on {device}, and the layer runs on {told}"
    return None


def runs_on_an_accelerator(world: World) -> bool:
    """Whether a layer of the placed model runs elsewhere than on the CPU."""
    found = runs_on(world.placed.model, world.placed.where).values()
    return any(device.type != "cpu" for devices in found for device in devices)


def returned_cache(world: World) -> Any:
    """The cache that the call on the placed model returned, or None."""
    return upstream.cache_of(world.placed_outcome.returned)
