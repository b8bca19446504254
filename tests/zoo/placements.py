"""Loaders and dispatchers that get one thing wrong. Each places as the installed ones do, then spoils it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from conformance.placing.loaders import load_installed, place_with_originals
from conformance.reference.tying import tied_groups
from conformance.subjects.installed import Installed


class Placer(Installed):
    """Places right, says nothing of misplaced weights, and decodes as installed."""

    name = "placer"

    def place(self, recipe: Any) -> Any:
        model = place_with_originals(recipe)
        self.spoil(model)
        return model

    def spoil(self, model: Any) -> None:
        """What this one gets wrong."""


def _put(model: Any, name: str, tensor: torch.Tensor) -> None:
    module_name, _, tensor_name = name.rpartition(".")
    model.get_submodule(module_name)._parameters[tensor_name] = nn.Parameter(tensor, requires_grad=False)


def _present(model: Any) -> list[str]:
    """Parameters that are there and that no hook replaces."""
    names = [name for name, tensor in model.named_parameters() if not tensor.is_meta]
    owners = {name: model.get_submodule(name.rpartition(".")[0]) for name in names}
    return [name for name in names if not getattr(getattr(owners[name], "_hf_hook", None), "offload", False)]


class ForgetsAPart(Placer):
    """Leaves one weight on meta, with nothing to bring it."""

    name = "forgets-a-part"

    def spoil(self, model: Any) -> None:
        for name in _present(model)[:1]:
            _put(model, name, torch.empty_like(model.get_parameter(name), device="meta"))


class BreaksTies(Placer):
    """Gives one member of a tied group a copy of its own."""

    name = "breaks-ties"

    def spoil(self, model: Any) -> None:
        for group in tied_groups(model)[:1]:
            tensor = model.get_parameter(group[-1])
            if not tensor.is_meta:
                _put(model, group[-1], tensor.detach().clone())


class ForgetsTheMap(Placer):
    """Tells of a map that lacks the last module."""

    name = "forgets-the-map"

    def spoil(self, model: Any) -> None:
        named = getattr(model, "hf_device_map", {})
        model.hf_device_map = {name: place for name, place in list(named.items())[:-1] if name}


class ReadsMeta(Placer):
    """Multiplies with a matrix on meta, whatever its module's weight is: silent garbage."""

    name = "reads-meta"

    def spoil(self, model: Any) -> None:
        head = model.get_output_embeddings()
        right = head.forward

        def forward(states: torch.Tensor) -> torch.Tensor:
            size = states.shape[-1]
            if states.device.type == "cpu":
                return right(torch.mm(states.flatten(0, -2), torch.empty(size, size, device="meta")).view_as(states))
            return right(states)

        head.forward = forward


class RotaryLeftBehind(Placer):
    """Loses the values of the rotary buffers on the way."""

    name = "rotary-left-behind"

    def spoil(self, model: Any) -> None:
        for name, buffer in model.named_buffers():
            if "inv_freq" in name and not buffer.is_meta:
                buffer.mul_(0.5)


class RotaryLostInFewDigits(Placer):
    """Loses the values of the rotary buffers where the weights are not in float32."""

    name = "rotary-lost-in-few-digits"

    def spoil(self, model: Any) -> None:
        for name, buffer in model.named_buffers():
            if "inv_freq" in name and not buffer.is_meta and model.dtype != torch.float32:
                buffer.zero_()


class ChangesWhatItPasses(Placer):
    """A hook at the head hands on half of what it is given."""

    name = "changes-what-it-passes"

    def spoil(self, model: Any) -> None:
        head = model.get_output_embeddings()
        right = head.forward
        head.forward = lambda states: right(states * 0.5)


class ChangesItInFewDigits(ChangesWhatItPasses):
    """The same, where the weights are not in float32."""

    name = "changes-it-in-few-digits"

    def spoil(self, model: Any) -> None:
        if model.dtype != torch.float32:
            super().spoil(model)


class IgnoresTheMap(Placer):
    """Puts everything in the first place of the map, and tells of the map that it was given."""

    name = "ignores-the-map"

    def place(self, recipe: Any) -> Any:
        if isinstance(recipe.device_map, str):
            return super().place(recipe)
        model = super().place(replace(recipe, device_map={"": next(iter(recipe.device_map.values()))}))
        model.hf_device_map = dict(recipe.device_map)
        return model


class PutsAPartElsewhere(Placer):
    """Puts the last part where the first is, and tells of that map."""

    name = "puts-a-part-elsewhere"

    def place(self, recipe: Any) -> Any:
        if isinstance(recipe.device_map, str) or len(recipe.device_map) < 2:
            return super().place(recipe)
        (first, *_, last), right = recipe.device_map, recipe.device_map
        return super().place(replace(recipe, device_map={**right, last: right[first]}))


class PutsAWeightWhereItsModuleIsNot(Placer):
    """Moves the first weight to another device, and leaves the hooks as they are."""

    name = "puts-a-weight-where-its-module-is-not"

    def spoil(self, model: Any) -> None:
        for name in _present(model)[:1]:
            weight = model.get_parameter(name)
            _put(model, name, weight.detach().to(torch.device(weight.device.type, weight.device.index + 1)))


class TrainsWhatItPlaces(Placer):
    """Leaves the model as for training."""

    name = "trains-what-it-places"

    def spoil(self, model: Any) -> None:
        model.train()


class AttendsOtherwise(Placer):
    """Chooses another implementation of attention on the way."""

    name = "attends-otherwise"

    def spoil(self, model: Any) -> None:
        one, other = "eager", "sdpa"
        model.set_attn_implementation(other if model.config._attn_implementation == one else one)


class PlansByIndex(Placer):
    """Runs out of a list where the memory is tight."""

    name = "plans-by-index"

    def place(self, recipe: Any) -> Any:
        if isinstance(recipe.device_map, str):
            return [][0]
        return super().place(recipe)


class SavesAnother(Placer):
    """Saves one weight changed."""

    name = "saves-another"

    def spoil(self, model: Any) -> None:
        right = model.save_pretrained

        def save_pretrained(folder: Any, **how: Any) -> None:
            for name in _present(model)[:1]:
                model.get_parameter(name).data.add_(1.0)
            right(folder, **how)

        model.save_pretrained = save_pretrained


class SavesAnotherLater(Placer):
    """Saves one weight changed once it has decoded."""

    name = "saves-another-later"

    def generate(self, model: Any, call: Any) -> Any:
        spoil = getattr(model, "spoil_what_is_saved", None)
        if spoil is not None:
            spoil()
        return super().generate(model, call)

    def spoil(self, model: Any) -> None:
        model.spoil_what_is_saved = lambda: SavesAnother().spoil(model)


class LosesTheLastFile(Placer):
    """Of a checkpoint in several files, takes the last for read."""

    name = "loses-the-last-file"

    def load(self, model_class: Any, folder: Path, **kept: Any) -> Any:
        model = load_installed(model_class, folder, **kept)
        index = folder / "model.safetensors.index.json"
        where = json.loads(index.read_text())["weight_map"] if index.exists() else {}
        for name, tensor in model.state_dict().items():
            if where.get(name) == max(where.values(), default="none"):
                tensor.zero_()
        return model


class RoundsWeights(Placer):
    """Takes the weights through a dtype of fewer digits on the way."""

    name = "rounds-weights"

    def spoil(self, model: Any) -> None:
        for name in _present(model):
            weight = model.get_parameter(name).data
            weight.copy_(weight.to(torch.bfloat16))


class KeepsTheOldFile(Placer):
    """Saves nothing where there is a checkpoint already."""

    name = "keeps-the-old-file"

    def spoil(self, model: Any) -> None:
        right = model.save_pretrained

        def save_pretrained(folder: Any, **how: Any) -> None:
            if not list(Path(folder).glob("*.safetensors")):
                right(folder, **how)

        model.save_pretrained = save_pretrained


class EditsConfigWhilePlacing(Placer):
    """Leaves a mark in the config."""

    name = "edits-config-while-placing"

    def spoil(self, model: Any) -> None:
        model.config = copy.deepcopy(model.config)
        model.config.bos_token_id = 3


class AuditsVaguely(Placer):
    """Finds that a weight is missing, and does not say which."""

    name = "audits-vaguely"

    def audit(self, model: Any) -> None:
        if any(tensor.is_meta for tensor in model.parameters()):
            raise RuntimeError("a weight is missing")


class AuditsByDevice(Placer):
    """Takes every weight on meta for a lost one, whatever a hook brings."""

    name = "audits-by-device"

    def audit(self, model: Any) -> None:
        lost = [name for name, tensor in model.named_parameters(remove_duplicate=False) if tensor.is_meta]
        if lost:
            raise RuntimeError(f"{', '.join(lost)}: not loaded")


class MovesIdsToMeta(Placer):
    """Moves the prompt where the first weight is, which is nowhere."""

    name = "moves-ids-to-meta"

    def generate(self, model: Any, call: Any) -> Any:
        place = next(model.parameters()).device
        moved = {name: tensor.to(place) if place.type == "meta" else tensor for name, tensor in call.inputs.items()}
        return super().generate(model, call.replace(inputs=moved))


class LoadsOnOneDevice(Placer):
    """Moves the whole model to the first accelerator, and shares it out from there."""

    name = "loads-on-one-device"

    def place(self, recipe: Any) -> Any:
        if hasattr(torch, "sim") and torch.sim.is_available():
            copy.deepcopy(recipe.model).to("sim:0")
        return super().place(recipe)
