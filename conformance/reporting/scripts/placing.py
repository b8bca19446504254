# ruff: noqa: INP001
"""A model placed as a report says, and its answer; the model may tie blocks by patterns, or be DiffusionGemma."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import accelerate
import torch
import transformers
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import (
    GEMMA,
    HOW,
    IDS,
    INPUTS,
    PLACING,
    SCALE,
    SETTINGS,
    TIES,
    WEIGHT_SEED,
    fill,
    make_model,
)


def base_model() -> Any:
    """The model of the report, not placed anywhere."""
    model = make_model()
    if GEMMA:
        config = transformers.DiffusionGemmaConfig(**GEMMA)
        model = transformers.DiffusionGemmaForBlockDiffusion._from_config(config, attn_implementation="eager")
    elif TIES is not None:
        kind, config = type(model), copy.deepcopy(model.config)
        config.tie_word_embeddings = config.get_text_config(decoder=True).tie_word_embeddings = True
        made: Any = type(kind.__name__, (kind,), {"_tied_weights_keys": {**(kind._tied_weights_keys or {}), **TIES}})
        settings = model.generation_config
        model = made._from_config(config, attn_implementation=model.config._attn_implementation).to(model.dtype)
        model.generation_config = settings
    fill(model.eval(), WEIGHT_SEED, SCALE)
    return model


def placed(base: Any) -> Any:
    """The same model where the report puts it."""
    folder, off = tempfile.mkdtemp(), tempfile.mkdtemp()
    loader, device_map, more = PLACING["loader"], PLACING["device_map"], {"offload_buffers": PLACING["buffers"]}
    if loader == "from_pretrained":
        base.save_pretrained(folder)
        more |= {"max_memory": PLACING["max_memory"], "offload_folder": off, "dtype": base.dtype}
        more["attn_implementation"] = base.config._attn_implementation
        model = type(base).from_pretrained(folder, device_map=device_map, **more).eval()
        model.generation_config = base.generation_config
        return model
    model = copy.deepcopy(base)
    if loader == "dispatch_model":
        skip = getattr(model, "_skip_keys_device_placement", None)
        return accelerate.dispatch_model(model, device_map=device_map, offload_dir=off, skip_keys=skip, **more)
    if loader == "cpu_offload":
        return accelerate.cpu_offload(model, execution_device=torch.device("cpu"), **more)
    return accelerate.disk_offload(model, off, execution_device=torch.device("cpu"), **more)


def answer(model: Any, base: Any) -> dict[str, Any]:
    """What a model says, its inputs where the report puts them; `base` gives embeddings and an assistant."""
    inputs = {name: tensor.to(model.device if IDS == "model.device" else "cpu") for name, tensor in INPUTS.items()}
    torch.manual_seed(0)
    if GEMMA:
        out = model.generate(input_ids=inputs["input_ids"].clamp(max=59), **HOW)
        return {"sequences": getattr(out, "sequences", out).tolist()}
    if HOW.get("embeddings"):
        inputs["inputs_embeds"] = base.get_input_embeddings()(inputs.pop("input_ids").cpu()).detach()
    inputs = {} if HOW.get("no inputs") else inputs
    if HOW.get("assisted"):
        inputs["assistant_model"] = copy.deepcopy(base)
    settings = {**SETTINGS, **HOW.get("settings", {})}
    return {"sequences": model.generate(**inputs, generation_config=GenerationConfig(**settings)).sequences.tolist()}
