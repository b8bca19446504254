"""Drafts of a whole block at once from the main model's own hidden states, in the releases that have it."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

CONFIG, MODEL = "MuseGlimmerAssistantConfig", "MuseGlimmerAssistantModel"  # the only assistant of the kind that ships
FLASH = {"speculation_type": "dflash"}


@cache
def drafts_blocks() -> bool:
    """Whether the release decodes so, and has an assistant for it."""
    transformers = importlib.import_module("transformers")
    config = transformers.GenerationConfig()
    return hasattr(config, "speculation_type") and hasattr(transformers, MODEL)


def block_drafter(model: Any, most: int) -> Any | None:
    """A new assistant of two heads for a main model, which drafts `most` tokens; None where their widths do not fit."""
    import torch

    transformers, config = importlib.import_module("transformers"), model.config.get_text_config(decoder=True)
    size, head = getattr(config, "hidden_size", None), model.get_output_embeddings()
    widths = {model.get_input_embeddings().weight.shape[-1], getattr(head, "in_features", None), size}
    if len(widths) > 1 or size is None or size % 4:
        return None
    made = getattr(transformers, CONFIG)(
        hidden_size=size,
        intermediate_size=2 * size,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=size // 2,
        sliding_window=8,
        block_size=most + 1,
        mask_token_id=1,
        target_layer_ids=list(range(config.num_hidden_layers)),
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        drafter = getattr(transformers, MODEL)(made).to(model.dtype).eval()
    drafter.generation_config = transformers.GenerationConfig()
    return drafter
