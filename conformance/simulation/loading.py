"""`torch.load` on simulated devices: storages that are said to be there, of which tensors there are made."""

from __future__ import annotations

import torch

from conformance.simulation.ledger import LEDGER
from conformance.simulation.tensors import NAME


class Storage(torch.UntypedStorage):
    """A storage in the CPU's memory that says it is on `sim:N`, as tensors over it will be."""

    index: int

    @property
    def device(self) -> torch.device:
        """Where it is said to be."""
        return torch.device(NAME, self.index)


def load_there(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    """A storage that was read from a file, on the simulated device that `map_location` names; None: it names none."""
    if location.partition(":")[0] != NAME:
        return None
    index = LEDGER.index(torch.device(location).index)
    storage.__class__ = Storage
    storage.index = index
    return storage


def register() -> None:
    """Asked before torch's own way for devices of others, which wants storages that a backend in Python cannot make."""
    torch.serialization.register_package(15, lambda _: None, load_there)
