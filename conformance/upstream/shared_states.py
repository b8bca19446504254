"""Drafts from the main model's own keys and values, which an assistant without any attends to."""

from __future__ import annotations

import importlib
from typing import Any

NAME = "AssistantForCausalLM"
# What starts the name of a class that the release says shares its states: text for messages, and whose assistant it is.
SHARING = {"Gemma4Unified": "Gemma4Unified", "Gemma4": "Gemma4", "Gemma3n": "Gemma4"}
KINDS = ["sliding_attention", "full_attention"]  # the layers whose states such an assistant asks for


def shares_states(class_name: str) -> bool:
    """Whether the release says that classes of this name hand out keys and values, and has an assistant for that."""
    return _kind(class_name) is not None


def sharing_drafter(model: Any) -> Any | None:
    """A new assistant of two layers for a main model; None where the model has not got both kinds of layer.

    Its heads are as many and as wide as those whose keys and values it attends to, kind by kind.
    """
    import torch

    transformers, kind = importlib.import_module("transformers"), _kind(type(model).__name__)
    text = model.config.get_text_config(decoder=True)
    if kind is None or set(getattr(text, "layer_types", None) or ()) != set(KINDS):
        return None
    attention = {its: layer.self_attn for its, layer in zip(text.layer_types, model.get_decoder().layers, strict=True)}
    near, far = (attention[its] for its in KINDS)
    config = getattr(transformers, f"{kind}AssistantConfig")(
        text_config=getattr(transformers, f"{kind}TextConfig")(
            hidden_size=text.hidden_size,
            intermediate_size=2 * text.hidden_size,
            num_hidden_layers=len(KINDS),
            layer_types=list(KINDS),
            num_kv_shared_layers=len(KINDS),
            num_attention_heads=text.num_attention_heads,
            num_key_value_heads=text.num_attention_heads // near.num_key_value_groups,
            num_global_key_value_heads=text.num_attention_heads // far.num_key_value_groups,
            attention_k_eq_v=True,  # else the figure above is not looked at; the assistant has neither keys nor values
            head_dim=near.head_dim,
            global_head_dim=far.head_dim,
            sliding_window=text.sliding_window,
            max_position_embeddings=text.max_position_embeddings,
            vocab_size=text.vocab_size,
            bos_token_id=1,
            eos_token_id=None,
            pad_token_id=0,
            **({} if kind == "Gemma4Unified" else {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}),
        ),
        backbone_hidden_size=text.hidden_size,
    )
    with torch.random.fork_rng(devices=[]):
        drafter = getattr(transformers, kind + NAME)(config).to(model.dtype).eval()
    drafter.generation_config = transformers.GenerationConfig()
    return drafter


def attends_to_another(assistant: Any) -> bool:
    """Whether an assistant is of the kind, without a cache of its own."""
    return type(assistant).__name__.endswith(NAME)


def _kind(class_name: str) -> str | None:
    """What the name of the assistant's class starts with."""
    transformers = importlib.import_module("transformers")
    kind = next((kind for start, kind in SHARING.items() if class_name.startswith(start)), None)
    return kind if kind is not None and hasattr(transformers, kind + NAME) else None
