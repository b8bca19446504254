# ruff: noqa: INP001
"""A prompt that reaches the model as embeddings."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def arriving(model: Any) -> dict[str, Any]:
    """What `generate` is given: the embeddings of the ids."""
    rest = {name: value for name, value in INPUTS.items() if name != "input_ids"}
    return {"inputs_embeds": model.get_input_embeddings()(INPUTS["input_ids"]).detach(), **rest}
