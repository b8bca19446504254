"""Checkpoints in every form that a loader reads: one file or several, tied weights under any of their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from conformance import upstream
from conformance.placing.recipe import size_of
from conformance.plans.placement import PlacementPlan
from conformance.reference.tying import declared_pairs

FILES = 3  # in about how many a checkpoint is split


def most_bytes(model: Any) -> int:
    """The most that a file holds where a checkpoint is split."""
    return max(1, size_of(model) // FILES)


def save(model: Any, folder: Path, *, shards: bool) -> None:
    """Save a model as its own method does, in one file or in several."""
    model.save_pretrained(folder, **({"max_shard_size": most_bytes(model)} if shards else {}))


def save_as(plan: PlacementPlan, model: Any, folder: Path) -> None:
    """Save an unplaced model in the form that a plan asks for."""
    if plan.stored == "bin":
        _save_own_format(model, folder)
        return
    save(model, folder, shards=plan.shards)
    if plan.stored != "once":
        _rename(model, folder, keep=plan.stored == "every name")


def _save_own_format(model: Any, folder: Path) -> None:
    """In torch's own format, which says of several names that they are one storage: what other tools still write."""
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    if model.can_generate():
        model.generation_config.save_pretrained(folder)
    kept = {name: tensor for name, tensor in model.state_dict().items() if name not in upstream.never_saved(model)}
    torch.save(kept, folder / "pytorch_model.bin")


def _rename(model: Any, folder: Path, *, keep: bool) -> None:
    """Put each tied weight that a file holds under its source's name under its targets' names; keep: as well.

    A group of which no file holds the source, as where names are others in a checkpoint, stays as it is.
    """
    from safetensors.torch import load_file, save_file

    pairs = sorted(declared_pairs(model).items())
    where: dict[str, str] = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors, sources = load_file(file), set()
        for target, source in pairs:
            if source in tensors and target not in tensors:
                tensors[target] = tensors[source].clone()
                sources |= {source}
        kept = {name: tensor for name, tensor in tensors.items() if keep or name not in sources}
        save_file(kept, file, metadata={"format": "pt"})
        where |= dict.fromkeys(kept, file.name)
    for index in folder.glob("*.safetensors.index.json"):
        told = json.loads(index.read_text(encoding="utf-8"))
        index.write_text(json.dumps({**told, "weight_map": where}), encoding="utf-8")
