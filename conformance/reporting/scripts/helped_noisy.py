# ruff: noqa: INP001
"""An assistant that is the model with noise in its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from conformance.reporting.scripts.frame import DRAFTING, NOISE, make_model, uniform


def helped(_: Any) -> dict[str, Any]:
    """The keyword of `generate` for the assistant."""
    model, (seed, size) = make_model(), NOISE
    for name, weight in model.named_parameters():
        noise = torch.from_numpy(np.asarray(uniform(seed, f"noise:{name}", tuple(weight.shape))))
        weight.data.mul_((1.0 + size * noise).to(weight.dtype))
    vars(model.generation_config).update(DRAFTING)
    return {"assistant_model": model}
