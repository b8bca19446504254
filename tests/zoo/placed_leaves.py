"""Planners and placers that are right about the model, and change something that is not theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers.cache_utils import DynamicLayer

from conformance.placing.mistakes import NO_DEVICE
from conformance.reference.bringing import hooks_of
from conformance.subjects.reference import Reference
from zoo.placements import Placer


class RaisesTheLimits(Reference):
    """Doubles the limits in the caller's own mapping, and fills them."""

    name = "raises-the-limits"

    def planned(self, recipe: Any) -> Any:
        for place, size in (recipe.limits or {}).items():
            recipe.max_memory[place] = 2 * size
        return super().planned(recipe)


class UsesUpTheMap(Placer):
    """Takes entry after entry from the caller's map."""

    name = "uses-up-the-map"

    def place(self, recipe: Any) -> Any:
        if isinstance(recipe.device_map, str):
            return super().place(recipe)
        model = super().place(replace(recipe, device_map=dict(recipe.device_map)))
        recipe.device_map.clear()
        return model


class NotesInTheCheckpoint(Placer):
    """Writes into the folder that it reads."""

    name = "notes-in-the-checkpoint"

    def place(self, recipe: Any) -> Any:
        model = super().place(recipe)
        (Path(recipe.checkpoint) / "placed.json").write_text(json.dumps({"placed": True}))
        return model


class SeedsAnew(Placer):
    """Seeds torch, so that every loading is alike."""

    name = "seeds-anew"

    def spoil(self, model: Any) -> None:  # noqa: ARG002
        torch.manual_seed(0)


class LeavesTheDtype(Placer):
    """Leaves the default dtype as it was for loading."""

    name = "leaves-the-dtype"

    def spoil(self, model: Any) -> None:
        torch.set_default_dtype(model.dtype)


class LeavesTheDevice(Placer):
    """Leaves torch's default device where the first weight is."""

    name = "leaves-the-device"

    def spoil(self, model: Any) -> None:
        torch.set_default_device(next(model.parameters()).device)


class LeavesMoreThreads(Placer):
    """Takes more threads to load with, and keeps them."""

    name = "leaves-more-threads"

    def spoil(self, model: Any) -> None:  # noqa: ARG002
        torch.set_num_threads(torch.get_num_threads() + 1)


class WritesWhereItWasTold(Placer):
    """Keeps what is offloaded in files called by the weight alone, and puts them in the folder that it is given."""

    name = "writes-where-it-was-told"

    def place(self, recipe: Any) -> Any:
        model = super().place(recipe)
        if recipe.offload_folder is not None:
            folder = Path(recipe.offload_folder) / "own"
            folder.mkdir(exist_ok=True)
            for name, weight in recipe.model.named_parameters():
                torch.save(weight.detach(), folder / name)
            for module in model.modules():
                for hook in hooks_of(module):
                    if getattr(hook, "weights_map", None) is not None:
                        hook.weights_map = _InFiles(folder, getattr(hook.weights_map, "prefix", ""))
        return model


class _InFiles(Mapping[str, torch.Tensor]):
    """Weights in files of their names, in a folder."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder, self.prefix = folder, prefix

    def __getitem__(self, name: str) -> torch.Tensor:
        return torch.load(self.folder / f"{self.prefix}{name}")

    def __iter__(self) -> Iterator[str]:
        return (file.name.removeprefix(self.prefix) for file in self.folder.iterdir())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class TakesAnyMap(Placer):
    """Puts what a wrong map leaves out on the first device of the rest, and its values are lost."""

    name = "takes-any-map"

    def place(self, recipe: Any) -> Any:
        if isinstance(recipe.device_map, str):
            return super().place(recipe)
        names = {name.rpartition(".")[0] for name in recipe.model.state_dict()}
        known = {
            name: place for name, place in recipe.device_map.items() if place != NO_DEVICE and _is_part(recipe, name)
        }
        lost = sorted(name for name in names if not any(_within(name, entry) for entry in known))
        if not lost:
            return super().place(recipe)
        for name, weight in recipe.model.named_parameters():
            if any(_within(name, entry) for entry in lost):
                weight.data.zero_()
        return super().place(replace(recipe, loader="dispatch_model", device_map={"": "cpu"}))


def _is_part(recipe: Any, name: str) -> bool:
    return any(_within(one, name) for one in recipe.model.state_dict())


def _within(name: str, entry: str) -> bool:
    return entry in ("", name) or name.startswith(f"{entry}.")


class Freezes(Placer):
    """Takes what is placed for what is not trained."""

    name = "freezes"

    def spoil(self, model: Any) -> None:
        model.requires_grad_(False)


class EditsConfigWhenItRuns(Placer):
    """Leaves a mark in the config with the first forward."""

    name = "edits-config-when-it-runs"

    def spoil(self, model: Any) -> None:
        def mark(*_: Any) -> None:
            model.config.pad_token_id = 5

        model.register_forward_pre_hook(mark)


class KeepsWhatItBrings(Placer):
    """Hooks bring the weights, and leave them there: memory fills up."""

    name = "keeps-what-it-brings"

    def spoil(self, model: Any) -> None:
        for module in model.modules():
            for hook in hooks_of(module):
                if getattr(hook, "offload", False):
                    hook.post_forward = lambda module, output: output  # noqa: ARG005


class KeepsTheCacheInOnePlace(Placer):
    """Keeps all keys and values on one device, and brings copies of them to each layer."""

    name = "keeps-the-cache-in-one-place"

    def place_of_cache(self, model: Any) -> torch.device:
        """Where the first weight is that is anywhere."""
        return next((tensor.device for tensor in model.parameters() if not tensor.is_meta), torch.device("cpu"))

    def generate(self, model: Any, call: Any) -> Any:
        right, place = DynamicLayer.update, self.place_of_cache(model)

        def update(layer: Any, keys: torch.Tensor, values: torch.Tensor, *given: Any, **named: Any) -> Any:
            found = right(layer, keys.to(place), values.to(place), *given, **named)
            return tuple(tensor.to(keys.device) for tensor in found)

        with patch.object(DynamicLayer, "update", update):
            return super().generate(model, call)


class KeepsTheCacheOnTheCpu(KeepsTheCacheInOnePlace):
    """Saves the memory of the accelerators that nobody asked to save."""

    name = "keeps-the-cache-on-the-cpu"

    def place_of_cache(self, model: Any) -> torch.device:  # noqa: ARG002
        return torch.device("cpu")
