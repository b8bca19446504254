# ruff: noqa: INP001
"""An assistant that is the model itself, but says another token where its script has it so."""

from __future__ import annotations

import functools
from typing import Any

from conformance.reporting.scripts.frame import DRAFTING, SCRIPT, make_model


def helped(_: Any) -> dict[str, Any]:
    """The keyword of `generate` for the assistant."""
    model = make_model()
    right = model.forward

    @functools.wraps(right)
    def forward(*args: Any, **kwargs: Any) -> Any:
        out = right(*args, **kwargs)
        cache = next(out[name] for name in ("cache", "past_key_values", "cache_params") if out.get(name) is not None)
        if not SCRIPT[cache.get_seq_length() % len(SCRIPT)]:
            out.logits = out.logits.roll(1, dims=-1)
        return out

    model.forward = forward
    vars(model.generation_config).update(DRAFTING)
    return {"assistant_model": model}
