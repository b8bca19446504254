"""The models that are placed: a case's own, its subclasses with weights tied by patterns, DiffusionGemma."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from conformance import upstream
from conformance.build import DTYPES, Scenario
from conformance.building import own_generate
from conformance.errors import NotBuildable
from conformance.plans.placement import Model, PlacementPlan
from conformance.reference.tying import TyingError, declared_pairs, tied_groups
from conformance.weights import fill

CANVAS, SPECIAL = 8, 60  # tokens that DiffusionGemma makes at once; the first id that stands for an image


def planned(scenario: Scenario, plan: PlacementPlan) -> Any:
    """A new model of the kind that the plan names. Raises NotBuildable."""
    if not plan.by_itself:
        return make(scenario, plan.model)
    return _with_known_ties(own_generate.make(plan.by_itself, scenario.case.model, DTYPES[scenario.case.model.dtype]))


def make(scenario: Scenario, kind: Model) -> Any:
    """A new model of the kind, with the case's weights. Raises NotBuildable where the type has no such form.

    Ties that the case draws and ties of the kind are not mixed: the release lets one mapping replace the other.
    """
    if scenario.case.model.tied and kind in ("tied embeddings", "tied blocks", "tied parts"):
        raise NotBuildable("the case ties weights of its own")
    if kind == "own":
        model = scenario.model()
    elif kind == "diffusion gemma":
        model = _filled(scenario, diffusion_gemma(gemma_layers(scenario)))
    else:
        model = _filled(scenario, _tied(scenario, kind))
    upstream.one_kind_of_experts(model)
    return _with_known_ties(model)


def _with_known_ties(model: Any) -> Any:
    try:
        tied_groups(model)
    except TyingError as error:  # as where a declared tie names nothing in a model of this size
        raise NotBuildable(f"its ties cannot be told: {error}") from error
    return model


def _filled(scenario: Scenario, model: Any) -> Any:
    spec = scenario.case.model
    model = model.to(DTYPES[spec.dtype]).eval()
    fill(model, spec.weight_seed, spec.init_scale)
    return model


def _tied(scenario: Scenario, kind: Model) -> Any:
    model_class, config = scenario.model_class, copy.deepcopy(scenario.config)
    if reason := upstream.why_not_tied(config):
        raise NotBuildable(f"the config refuses tied weights: {reason}"[:200])
    for part in {id(c): c for c in (config, config.get_text_config(decoder=True))}.values():
        part.tie_word_embeddings = True
    patterns = patterns_of(scenario, kind)
    ties = {**(getattr(model_class, "_tied_weights_keys", None) or {}), **(patterns or {})}
    # A class of the same name, so that what is saved names the class that it stands for.
    made = type(
        model_class.__name__, (model_class,), {"_tied_weights_keys": ties, "__module__": model_class.__module__}
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            model = made._from_config(config, attn_implementation=scenario.case.model.attention)  # type: ignore[attr-defined]
        except Exception as error:
            raise NotBuildable(f"{kind}: {type(error).__name__}: {str(error)[:100]}") from error
    if not declared_pairs(model):
        raise NotBuildable("this type ties no weights")
    model.generation_config = scenario.plain_generation_config()
    return model


def patterns_of(scenario: Scenario, kind: Model) -> dict[str, str] | None:
    """The patterns that a kind of model adds to its class; None where it is no subclass."""
    if kind in ("own", "diffusion gemma"):
        return None
    return {} if kind == "tied embeddings" else block_patterns(scenario.pristine, by_kind=kind == "tied parts")


def block_patterns(model: nn.Module, *, by_kind: bool) -> dict[str, str]:
    """Patterns that tie all blocks like the first of a list to it: as modules, or the `weight`s in them only.

    Raises NotBuildable where no two blocks of any list are alike.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) > 1 and (alike := _alike(module)):
            chosen, path = "|".join(map(str, alike)), re.escape(name)
            rest = r"\.(?:[^.]+\.)*weight" if by_kind else ""
            return {rf"{path}\.(?:{chosen}){rest}": rf"{path}\.0{rest}"}
    raise NotBuildable("no two blocks of this model are alike")


def _alike(blocks: nn.ModuleList) -> Sequence[int]:
    """The numbers of the later blocks whose parameters have the names and shapes of the first's."""
    shapes = [{name: tensor.shape for name, tensor in block.named_parameters()} for block in blocks]
    return [index for index in range(1, len(shapes)) if shapes[0] and shapes[index] == shapes[0]]


def gemma_layers(scenario: Scenario) -> int:
    """How many layers the case's DiffusionGemma has: one to three."""
    return 1 + scenario.case.model.weight_seed % 3


def gemma_config(layers: int) -> dict[str, Any]:
    """The arguments of the config of a tiny DiffusionGemma."""
    text = {
        "vocab_size": 64,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "global_head_dim": 8,
        "num_global_key_value_heads": 1,
        "max_position_embeddings": 256,
        "sliding_window": 8,
        "layer_types": ["sliding_attention"] * (layers - 1) + ["full_attention"],
        "num_experts": 2,
        "top_k_experts": 1,
        "moe_intermediate_size": 16,
    }
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "patch_size": 4,
        "position_embedding_size": 16,
    }
    tokens = {"image_token_id": SPECIAL, "boi_token_id": SPECIAL + 1, "eoi_token_id": SPECIAL + 2}
    return {"text_config": text, "vision_config": vision, "canvas_length": CANVAS, **tokens}


def diffusion_gemma(layers: int) -> Any:
    """A tiny DiffusionGemma: encoder and decoder layers tied by patterns, in neither auto mapping."""
    try:
        from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion
    except ImportError:
        raise NotBuildable("the installed release has no DiffusionGemma") from None
    config = DiffusionGemmaConfig(**gemma_config(layers))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            return DiffusionGemmaForBlockDiffusion._from_config(config, attn_implementation="eager")
        except Exception as error:
            raise NotBuildable(f"DiffusionGemma: {type(error).__name__}: {str(error)[:100]}") from error
