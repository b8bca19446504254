"""The other mechanisms on a placed model: stopping one step late, a cache cropped, special tokens on other devices.

Each runs beside what differs from it in one thing. All need layers that really are on several devices: a model on one
device, or with the rest on the disk, is what the other modes are about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import interruption, upstream
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.compare import compare_exactly, unnumbered
from conformance.limits import time_limit
from conformance.outcome import Crash, Outcome
from conformance.placing.placed import Placed
from conformance.placing.world import World
from conformance.programs.machine import Machine
from conformance.simulation.deferral import Deferral
from conformance.simulation.ledger import LEDGER
from conformance.snapshots import Flat
from conformance.subjects.installed import Installed
from conformance.verdicts import Comparison

FED, TAKEN = 3, 2  # tokens fed at once after the prompt, and how many of them the crop takes back


def no_transfer(outcome: Outcome) -> str | None:
    """Why a run says nothing about several devices, or None; one that crashed says enough."""
    return None if outcome.crash or outcome.extra["transfers"] else "nothing was moved from one device to another"


# Stopping one step late


def lacks_deferral(world: World) -> str | None:
    """Why the subject has no deferred stopping; only the installed release may lack it."""
    return upstream.lacks("stopping") if world.runs.subject.name == Installed.name else None


def late(world: World, placed: Placed) -> Outcome:
    """The case's call, stopping one step late, on a device whose copies to the host are late."""
    return world.outcome(placed, change=lambda call: call.replace(mechanism="stopping"), probes=[Deferral(None)])


def differs_late(at_once: Outcome, one_late: Outcome) -> Comparison:
    """Every field of both outcomes, bitwise."""
    return compare_exactly(_on_the_host(one_late), _on_the_host(at_once), unnumbered)


def _on_the_host(outcome: Outcome) -> Flat:
    fields = outcome.fields()
    return {name: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf for name, leaf in fields.items()}


# A cache cropped


@dataclass
class Cropped:
    """Logits after the prompt, of the tokens fed, and of one fed after a crop; or why there are none.

    refusal: the cache says that it cannot be put back, or the model makes none.
    """

    logits: list[torch.Tensor] = field(default_factory=list)
    crash: Crash | None = None
    refusal: str = ""
    transfers: int = 0


def cropped(world: World, placed: Placed) -> Cropped:
    """Prompt, some tokens at once, most of them taken back, and one more: on a placed or unplaced model."""
    found = Cropped()
    with world.present(), torch.no_grad(), MODEL_CODE.running():
        try:
            with time_limit():
                _round_trip(world, placed, found)
        except BaseException as error:  # noqa: BLE001 - whatever the model or its cache raises is what is judged
            interruption.let_through(error)
            found.crash = Crash.of(error)
        found.logits = [logits.cpu() for logits in found.logits]
        found.transfers = sum(LEDGER.transfers.values())
    return found


def _round_trip(world: World, placed: Placed, found: Cropped) -> None:
    _, call = world.call(placed)
    prepared = upstream.handed_to_loop(placed.model, _with_own_cache(world, placed, call).arguments())
    machine = Machine.empty(placed.model, prepared, range(prepared.input_ids.shape[0]))
    more = prepared.input_ids[:, :1].expand(-1, FED)  # any tokens that the model knows
    found.logits.append(machine.prefill())
    if machine.cache is None or not upstream.can_be_put_back(machine.cache):
        found.refusal = "the cache does not say that it can be put back"
        return
    upstream.record_past(machine.cache)
    found.logits.append(machine.feed(more))
    machine.cache.crop(-TAKEN)
    machine.take_back(TAKEN)
    found.logits.append(machine.feed(more[:, :1]))


def _with_own_cache(world: World, placed: Placed, call: Call) -> Call:
    """The call with the cache of a subject that has caches of its own."""
    own = getattr(world.runs.subject, "new_cache", None)
    given = own(placed.model, call) if own else None
    return call if given is None else call.replace(extras={upstream.cache_argument(placed.model): given})


# Special tokens on other devices


def spoken_elsewhere(world: World, device: str) -> Outcome:
    """The case's call on the placed model, its special tokens given as tensors on a device that is not the ids'."""
    return world.outcome(world.placed, change=lambda call: call.replace(generation_config=_moved(call, device)))


def _moved(call: Call, device: str) -> Any:
    config = call.generation_config
    for name in ("bos", "eos", "pad"):
        given = getattr(config, f"{name}_token_id")
        if given is not None:
            setattr(config, f"{name}_token_id", torch.tensor(given).to(device))
    return config
