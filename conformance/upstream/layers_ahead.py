"""Drafts of layers that come after a model's own and say the tokens ahead, in the releases that have them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

AHEAD = {"use_mtp": True}
COUNT = "num_mtp_layers"  # the attribute of a config that tells how many of them a checkpoint has


@cache
def drafts_ahead() -> bool:
    """Whether the release decodes so."""
    config = importlib.import_module("transformers").GenerationConfig()
    return all(hasattr(config, name) for name in AHEAD)


def knows_layers_ahead(config: Any) -> bool:
    """Whether checkpoints of a config's type may have such layers, of the kind of its own layers."""
    text = config.get_text_config(decoder=True)
    lists = any(getattr(text, name, None) is not None for name in ("layer_types", "mlp_layer_types"))
    return drafts_ahead() and hasattr(text, COUNT) and not lists


def tell_of_layers_ahead(model: Any, count: int) -> None:
    """Have the config of a model say that its checkpoint has so many."""
    setattr(model.config.get_text_config(decoder=True), COUNT, count)


@contextmanager
def layers_ahead(fill: Callable[[Any], None]) -> Iterator[None]:
    """While the block runs, the layers are made and filled where the release would read them from a checkpoint."""
    import torch

    kind = importlib.import_module("transformers.modeling_layers").MtpModel

    def from_pretrained(main_model: Any, **_: Any) -> Any:
        with torch.random.fork_rng(devices=[]):
            made = kind(main_model, getattr(main_model.config.get_text_config(decoder=True), COUNT))
        made.layers.to(main_model.dtype)
        fill(made.layers)  # the embeddings and the head are the main model's
        return made.eval()

    with patch.object(kind, "from_pretrained", from_pretrained):
        yield
