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

    def take(self, device: int, size: int) -> None:
        """Book `size` bytes. Raises OutOfMemory, booking nothing, where the device has no room for them."""
        if self.held[device] + size > self.limit(device):
            raise OutOfMemory(
                f"sim out of memory. Tried to allocate {size} bytes. sim:{device} has a total capacity of "
                f"{self.limit(device)} bytes of which {self.limit(device) - self.held[device]} bytes are free."
            )
        self.held[device] += size
        self.peak[device] = max(self.peak[device], self.held[device])

    def give_back(self, device: int, size: int) -> None:
        """Book `size` bytes as free again."""
        self.held[device] -= size

    def reset(self) -> None:
        """Forget counts and limits; what is held stays booked."""
        self.limits.clear()
        self.transfers.clear()
        self.kernels.clear()
        self.draws.clear()
        self.peak = Counter(self.held)
        self.syncs = 0


LEDGER = Ledger()


class Held:
    """One storage on one device: its bytes are free again when the last tensor over it is gone."""

    __slots__ = ("device", "size")

    def __init__(self, device: int, size: int) -> None:
        self.size = 0
        LEDGER.take(device, size)
        self.device, self.size = device, size

    def __del__(self) -> None:
        if self.size:
            LEDGER.give_back(self.device, self.size)
