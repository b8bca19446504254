"""Models whose class decodes in a way of its own: their subject is the class itself."""

from __future__ import annotations

from typing import Any

import torch

from conformance.call import Call
from conformance.subjects.installed import Installed


class OwnGenerate:
    """Calls the `generate` of the model's class, with its own kind of settings: only the sequences are comparable."""

    name = Installed.name

    def generate(self, model: Any, call: Call) -> Any:
        """What it returns as sequences; of codes with several books, those of each step one after another."""
        made = model.generate(**call.inputs, **call.extras)
        sequences = getattr(made, "sequences", made)
        return sequences.flatten(1) if isinstance(sequences, torch.Tensor) and sequences.dim() > 1 else sequences
