"""What the simulated devices hold and were asked to do: bytes, limits, transfers, synchronisations, refusals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

DEVICES = 4
ROOMY = 1 << 34  # bytes: what a device has when nothing was said


class OutOfMemory(RuntimeError):
    """A simulated device has no room for what is asked; the message is worded as CUDA's is."""


@dataclass
class Ledger:
    """Counters of one stretch of work; `limits` and `held` are bytes per device index, `present` how many there are."""

    present: int = 0
    current: int = 0
    limits: dict[int, int] = field(default_factory=dict)
    held: Counter[int] = field(default_factory=Counter)
    peak: Counter[int] = field(default_factory=Counter)
    transfers: Counter[tuple[str, str]] = field(default_factory=Counter)
    syncs: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    draws: Counter[int] = field(default_factory=Counter)

    def index(self, device: int | None) -> int:
        """The index of a device that is there; None: of the current one. Raises RuntimeError as CUDA does."""
        index = self.current if device is None else device
        if not 0 <= index < self.present:
            raise RuntimeError(f"sim error: invalid device ordinal: sim:{index} of {self.present} devices")
        return index

    def limit(self, device: int) -> int:
        """The bytes that a device has in all."""
        return self.limits.get(device, ROOMY)

    def free(self, device: int) -> int:
        """The bytes that a device has left."""
        return self.limit(device) - self.held[device]

    def take(self, device: int, size: int) -> None:
        """Book `size` bytes. Raises OutOfMemory, booking nothing, where the device has no room for them."""
        if size > self.free(device):
            raise OutOfMemory(
                f"sim out of memory. Tried to allocate {size} bytes. sim:{device} has a total capacity of "
                f"{self.limit(device)} bytes of which {self.free(device)} bytes are free."
            )
        self.held[device] += size
        self.peak[device] = max(self.peak[device], self.held[device])

    def reset(self) -> None:
        """Forget counts, limits and what is held: tensors of an earlier stretch stay in the books of that."""
        self.limits.clear()
        self.transfers.clear()
        self.kernels.clear()
        self.draws.clear()
        self.held, self.peak = Counter(), Counter()
        self.syncs = 0


LEDGER = Ledger()


class Held:
    """One storage on one device: its bytes are free again when the last tensor over it is gone."""

    size = 0  # until something is booked, so that nothing is given back for what was refused

    def __init__(self, device: int, size: int) -> None:
        self.device, self.books = device, LEDGER.held
        self.resize(size)

    def resize(self, size: int) -> None:
        """The storage has `size` bytes now. Raises OutOfMemory where the device has no room for them."""
        if self.books is LEDGER.held:
            LEDGER.take(self.device, size - self.size)
        else:
            self.books[self.device] += size - self.size
        self.size = size

    def __del__(self) -> None:
        if self.size:
            self.books[self.device] -= self.size
