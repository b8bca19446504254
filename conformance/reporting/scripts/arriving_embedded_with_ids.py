# ruff: noqa: INP001
"""A prompt that reaches the model as embeddings, with the ids besides."""

from __future__ import annotations

from typing import Any

from conformance.reporting.scripts.frame import INPUTS


def arriving(model: Any) -> dict[str, Any]:
    """What `generate` is given: the embeddings of the ids, and all inputs."""
    return {"inputs_embeds": model.get_input_embeddings()(INPUTS["input_ids"]).detach(), **INPUTS}
