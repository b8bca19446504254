"""Placing a model by the installed loader and dispatcher: the calls that a user would make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.placing.recipe import Recipe
from conformance.reference.memory import Device
from conformance.reference.placement import plan_device_map


def load_installed(model_class: Any, folder: Path, **kept: Any) -> Any:
    """The model of a checkpoint, placed nowhere."""
    return model_class.from_pretrained(folder, **kept).eval()


def place_installed(recipe: Recipe) -> Any:
    """The placed model. Raises whatever the loader raises."""
    return LOADERS[recipe.loader](recipe)


def place_with_originals(recipe: Recipe) -> Any:
    """The same, with the tensors that were there before kept as long as the model.

    `dispatch_model` tells tied weights by the addresses they had. Where those are free again, a weight that is
    brought from the disk to such an address is taken for the tied one, and its values are lost.
    """
    originals = list(recipe.model.parameters())
    model = place_installed(recipe)
    model.tensors_before_placing = originals
    return model


def planned_by_reference(recipe: Recipe) -> Recipe:
    """The recipe with a map of the reference planner in place of the name of a way to plan one. Raises DoesNotFit."""
    if not isinstance(recipe.device_map, str):
        return recipe
    memory: dict[Device, float] = {**recipe.limits} if recipe.limits else {"cpu": float("inf")}
    plan = plan_device_map(recipe.model, memory)
    return replace(recipe, device_map=plan.device_map, max_memory=None)


def _told(folder: Path | None) -> str | None:
    return None if folder is None else str(folder)


def _from_pretrained(recipe: Recipe) -> Any:
    return (
        type(recipe.model)
        .from_pretrained(
            recipe.checkpoint,
            device_map=recipe.told,
            max_memory=recipe.max_memory,
            offload_folder=_told(recipe.offload_folder),
            offload_buffers=recipe.offload_buffers,
            attn_implementation=recipe.model.config._attn_implementation,
            dtype=recipe.model.dtype if recipe.dtype is None else recipe.dtype,
        )
        .eval()
    )


def _dispatch_model(recipe: Recipe) -> Any:
    from accelerate import dispatch_model

    return dispatch_model(
        recipe.model,
        device_map=recipe.told,
        offload_dir=_told(recipe.offload_folder),
        offload_buffers=recipe.offload_buffers,
        skip_keys=getattr(recipe.model, "_skip_keys_device_placement", None),
    )


def _cpu_offload(recipe: Recipe) -> Any:
    import torch
    from accelerate import cpu_offload

    device = torch.device(recipe.run_on)
    return cpu_offload(recipe.model, execution_device=device, offload_buffers=recipe.offload_buffers)


def _disk_offload(recipe: Recipe) -> Any:
    import torch
    from accelerate import disk_offload

    device = torch.device(recipe.run_on)
    folder = str(recipe.offload_folder)
    return disk_offload(recipe.model, folder, execution_device=device, offload_buffers=recipe.offload_buffers)


LOADERS = {
    "from_pretrained": _from_pretrained,
    "dispatch_model": _dispatch_model,
    "cpu_offload": _cpu_offload,
    "disk_offload": _disk_offload,
}
