"""The classes of models, and what their forwards take."""

from __future__ import annotations

import copy
import importlib
import inspect
from functools import cache
from typing import Any


def model_class(class_name: str) -> Any:
    """The model class of this name."""
    return getattr(importlib.import_module("transformers"), class_name)


def config_for(model_class: Any, config: Any) -> Any:
    """What a model class is made with: the whole config or, for a class of the text part alone, that part."""
    text = config.sub_configs.get("text_config")
    alone = text is not None and getattr(model_class, "config_class", None) is text
    return config.get_text_config() if alone else config


def why_not_tied(config: Any) -> str | None:
    """Why a config refuses `tie_word_embeddings`, as some do where they are saved; None where it takes it.

    The first releases check no config.
    """
    tied = copy.deepcopy(config)
    tied.tie_word_embeddings = True
    return None if _refusal(config) else _refusal(tied)


def _refusal(config: Any) -> str | None:
    try:
        getattr(config, "validate", lambda: None)()
    except Exception as error:  # noqa: BLE001 - whatever a config's own rules raise
        return " ".join(str(error).split())
    return None


@cache
def forward_parameters(model_class: type) -> frozenset[str]:
    """The names that the forward of a model class takes."""
    return frozenset(inspect.signature(model_class.forward).parameters)  # type: ignore[attr-defined]


def one_kind_of_experts(model: Any) -> None:
    """Mixtures of experts compute the plain way, which is the same on every device; older releases know no other."""
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")


def never_saved(model: Any) -> frozenset[str]:
    """The weights that a model's class leaves out of checkpoints: they follow from its config, or are tied."""
    return frozenset(model._keys_to_ignore_on_save or ())
