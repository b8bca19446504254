# ruff: noqa: INP001
"""An assisted run, where a plain one works."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ALONE, CACHE, DRAFT, SETTINGS, make_model


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of plain decoding, and of decoding with the model's disturbed copy as its assistant."""
    config, assistant = GenerationConfig(**SETTINGS, **CACHE), make_model()
    for number, parameter in enumerate(assistant.parameters()):
        parameter.data.mul_(1 + 0.05 * (-1) ** number)
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.num_assistant_tokens = DRAFT
    assistant.generation_config.assistant_confidence_threshold = 0.0
    out = make_model().generate(**ALONE, generation_config=config)
    drafted = make_model().generate(**ALONE, generation_config=config, assistant_model=assistant)
    return torch.cat(out.logits), torch.cat(drafted.logits)
