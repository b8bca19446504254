"""Tiny models of classes with a `generate` of their own, and what they are called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance import upstream
from conformance.architectures.apply import build
from conformance.architectures.own_generate import FIRST_PLACEHOLDER, recipes
from conformance.architectures.shrink import tiny_config_of
from conformance.case import ModelSpec
from conformance.errors import BadInput, NotBuildable
from conformance.weights import fill, uniform


def make(class_name: str, spec: ModelSpec, dtype: torch.dtype) -> Any:
    """A new model of the class, its weights drawn as the spec says. Raises NotBuildable."""
    try:
        made_by = upstream.model_class(class_name)
    except AttributeError:
        raise NotBuildable(f"the installed release has no {class_name}") from None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            model = made_by._from_config(_config(class_name, made_by.config_class), attn_implementation="eager")
        except BadInput as error:  # an older release whose config lacks an attribute
            raise NotBuildable(f"{class_name}: {error}") from error
        except Exception as error:
            raise NotBuildable(f"{class_name}: {type(error).__name__}: {str(error)[:100]}") from error
    model = model.to(dtype).eval()
    fill(model, spec.weight_seed, spec.init_scale)
    upstream.one_kind_of_experts(model)
    return model


def _config(class_name: str, config_class: Any) -> Any:
    recipe = recipes()[class_name]
    if recipe.config:
        return config_class(**recipe.config)
    return build(config_class, {**tiny_config_of(config_class), **recipe.set})


def arguments(class_name: str, row: Sequence[int], seed: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The tensors that `generate` is called with: the row where it takes tokens, numbers drawn from the seed."""
    return {
        name: _tensor(*form, row=row, seed=seed, dtype=dtype) for name, form in recipes()[class_name].inputs.items()
    }


def _tensor(kind: str, *sizes: int, row: Sequence[int], seed: int, dtype: torch.dtype) -> torch.Tensor:
    """A recipe's prompt (placeholders, then the row), marks (which of them are placeholders), tokens, ones, numbers."""
    if kind == "prompt":
        return torch.tensor([[*sizes, *(1 + token % (FIRST_PLACEHOLDER - 1) for token in row)]])
    if kind == "marks":
        return torch.tensor([[1] * sizes[0] + [0] * len(row)])
    if kind == "ones":
        return torch.ones(sizes, dtype=torch.long)
    drawn = torch.from_numpy(uniform(seed, kind, sizes))
    if kind == "tokens":
        return 1 + (drawn.abs() * (FIRST_PLACEHOLDER - 1)).long()
    return drawn.to(dtype)
