# ruff: noqa: INP001
"""An unplaced model saved, its tied weights under the names that are tied to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from conformance.reporting.scripts.frame import KEEP, SHARDS, TIES


def store(model: Any, folder: str) -> None:
    """Under their sources' names as well, or no more."""
    model.save_pretrained(folder, **SHARDS)
    where = {}
    for file in Path(folder).glob("*.safetensors"):
        held = load_file(file)
        for target, source in TIES:
            if source in held:
                held[target] = held[source].clone()
        gone = () if KEEP else [source for _, source in TIES]
        save_file({name: held[name] for name in held if name not in gone}, file, metadata={"format": "pt"})
        where.update({name: file.name for name in held if name not in gone})
    for index in Path(folder).glob("*.index.json"):
        index.write_text(json.dumps({**json.loads(index.read_text()), "weight_map": where}))
