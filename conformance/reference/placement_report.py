"""What an audit of a placed model found, and the error that says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch


class PlacementError(RuntimeError):
    """A model that cannot run where its weights are; the message names each weight, and what to do."""

    def __init__(self, report: PlacementReport) -> None:
        self.report = report
        super().__init__(str(report))


@dataclass(frozen=True)
class PlacementReport:
    """What is wrong with a placed model; every list is empty when nothing is.

    stranded: parameter or buffer that will not be there when its module runs → why; elsewhere: one that is held on
    another device than the one on which hooks run its module → where; split: tied group → where its members are;
    unmapped: modules with weights that `hf_device_map` does not cover; mapless: offloaded, and no map
    at all, though something is stranded or several devices run: `cpu_offload` and `disk_offload`, on one device, give
    none. input_device: where token ids belong; ids_would_be_lost: `model.device` is `meta`, so that ids are not to be
    moved there. The model runs all the same, and nothing is wrong with it. unknown: a sentence for each thing of which
    nothing can be said, as a weight that a hook of the caller's own may bring, or a plain attribute on `meta`; nothing
    is accused.
    """

    stranded: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    split: dict[tuple[str, ...], str] = field(default_factory=dict)
    unmapped: tuple[str, ...] = ()
    mapless: bool = False
    input_device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    ids_would_be_lost: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.stranded or self.elsewhere or self.split or self.unmapped or self.mapless)

    def raise_if_wrong(self) -> None:
        """Raise PlacementError when anything is wrong."""
        if not self.ok:
            raise PlacementError(self)

    def lines(self) -> Iterator[str]:
        """One line for each thing that is wrong."""
        for name, why in self.stranded.items():
            yield f"{name} cannot be used where it is: {why}; load it, or map its module to a device that holds it"
        for name, where in self.elsewhere.items():
            yield f"{name} cannot be used where it is: it is on {where}; dispatch the model again, or move it there"
        for group, where in self.split.items():
            yield f"tied weights {', '.join(group)} are no longer one: {where}; map their modules to one device"
        for module in self.unmapped:
            yield f"{module or 'the model'} is missing from hf_device_map: add it to the device map"
        if self.mapless:
            yield "weights are on meta and the model has no hf_device_map: it was not dispatched; dispatch it"

    def __str__(self) -> str:
        lines = [*self.lines()] or ["every weight is where its module finds it"]
        lines += [f"unknown: {sentence}" for sentence in self.unknown]
        if self.ids_would_be_lost:
            lines.append(f"model.device is meta: put token ids on {self.input_device}, and give generate a prompt")
        return "\n".join(lines)
