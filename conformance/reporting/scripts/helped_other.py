# ruff: noqa: INP001
"""An assistant that is another model."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import DRAFTING, OTHER, fill


def helped(_: Any) -> dict[str, Any]:
    """The keyword of `generate` for the assistant."""
    kind, config, (attention, dtype, seed, scale), own = OTHER
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(**config)
    model = getattr(transformers, kind)._from_config(config, attn_implementation=attention)
    fill(model.to(getattr(torch, dtype)).eval(), seed, scale)
    model.generation_config = GenerationConfig(**own)
    vars(model.generation_config).update(DRAFTING)
    return {"assistant_model": model}
