"""Models of a config that never run: to know their size and the shapes of their weights."""

from __future__ import annotations

import copy
from typing import Any

import torch

from conformance import tying, upstream
from conformance.architectures import catalogue
from conformance.errors import CaseRefused, NotBuildable

MAX_PARAMETERS = 8_000_000


def refuse_large(name: str, config: Any) -> None:
    """Raise CaseRefused when the model would not be tiny; nothing of its size is allocated to find out."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    try:
        with torch.device("meta"):
            model = catalogue.auto_class(catalogue.get(name).task).from_config(config)
    except Exception:  # noqa: BLE001 - a type that cannot be made on `meta` is bounded by its config alone
        return
    count = sum(p.numel() for p in model.parameters())
    if count > MAX_PARAMETERS:
        raise CaseRefused(f"model.config makes a model of {count} parameters; at most {MAX_PARAMETERS} are allowed")


def weight_shapes(name: str, config: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of the weights of an architecture with this config, by each of their names.

    Raises NotBuildable where the release cannot make the model.
    """
    try:
        made_by = upstream.model_class(catalogue.get(name).class_name)
        model = made_by(copy.deepcopy(upstream.config_for(made_by, config)))
    except Exception as error:
        raise NotBuildable(f"{name}: {type(error).__name__}: {error}") from error
    return tying.shapes_of(model)
