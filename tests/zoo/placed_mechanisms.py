"""Mechanisms that are right on one device, and wrong as soon as layers are on several."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from transformers import DynamicCache

from conformance.reference import stop_checks
from conformance.simulation import tensors
from conformance.subjects.reference import Reference
from zoo.placements import Placer


class WaitsForAnotherDevice(Placer):
    """The event that it waits for is of the next device, on which nothing was copied."""

    name = "waits-for-another-device"

    def generate(self, model: Any, call: Any) -> Any:
        with patch.object(stop_checks, "event_of", _event_of_the_next):
            return Reference().generate(model, call)


def _event_of_the_next(device: torch.device) -> Any:
    other = device if device.type == "cpu" else torch.device(device.type, device.index + 1)
    event = torch.Event(device=other, blocking=True)
    event.record()
    return event


class CropsOneDevice(Placer):
    """Its caches take tokens back from the layers on the first layer's device only."""

    name = "crops-one-device"

    def new_cache(self, model: Any, _: Any) -> Any:
        """Of this kind for placed models only."""
        placed = getattr(model, "hf_device_map", None) is not None
        return OnOneDevice(config=model.config.get_text_config(decoder=True)) if placed else None


class OnOneDevice(DynamicCache):
    def crop(self, *count: int) -> None:
        for layer in self.layers:
            if layer.keys.device == self.layers[0].keys.device:
                layer.crop(*count)


class ComparesWhereTheTokenIs(Placer):
    """Compares tokens with an end token that it moves nowhere."""

    name = "compares-where-the-token-is"

    def generate(self, model: Any, call: Any) -> Any:
        end = call.generation_config.eos_token_id
        if isinstance(end, torch.Tensor) and "input_ids" in call.inputs:
            assert (call.inputs["input_ids"][:, :1] == end.flatten()).ndim
        return super().generate(model, call)


class LetsDevicesMix(Placer):
    """Its accelerator refuses no tensor of another device, and so its loop gets away with a token that is elsewhere."""

    name = "lets-devices-mix"

    def generate(self, model: Any, call: Any) -> Any:
        with patch.object(tensors._Call, "_refuse", lambda *_: None):
            for ids in call.inputs.values():
                assert (ids[:, :1] == torch.zeros(1, dtype=torch.long)).ndim
            return super().generate(model, call)
