"""Which kinds of layer the cache of a model has, in the project's words, told by its config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from conformance.architectures.overrides import override

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

WORDS = (
    "chunked",
    "convolutional",
    "encoder-decoder",
    "full",
    "hybrid",
    "hybrid_sliding",
    "indexed",
    "none",
    "own",  # always with a class: own:CLASS
    "recurrent",
    "sliding",
)
# The names are those that transformers allows in `layer_types`, old spellings included.
BY_LAYER_TYPE: dict[str, tuple[str, ...]] = {
    "full_attention": ("full",),
    "attention": ("full",),
    "sliding_attention": ("sliding",),
    "chunked_attention": ("chunked",),
    "indexed_attention": ("indexed",),
    "deepseek_sparse_attention": ("indexed",),
    "qwen_sparse_attention": ("indexed",),
    "minimax_m3_sparse": ("own:MiniMaxM3VLSparseCacheLayer",),
    "compressed_sparse_attention": ("own:DeepseekV4CSACache",),
    "heavily_compressed_attention": ("own:DeepseekV4HCACache",),
    "conv": ("convolutional",),
    "hybrid": ("hybrid",),
    "hybrid_sliding": ("hybrid_sliding",),
    "mlp": (),
    "moe": (),
}
RECURRENT = ("linear_attention", "mamba", "recurrent")
CONVOLUTIONS = ("conv_kernel", "mamba_d_conv", "conv1d_width", "linear_conv_kernel_dim", "short_conv_kernel_size")


def cache_kinds(config: PreTrainedConfig) -> tuple[str, ...]:
    """The kinds of layer in the cache that `generate` makes for this config, sorted.

    Reads the layer types of the decoder's config where there are any, as `DynamicCache` does, and what is known by
    hand where the model keeps its state in a class of its own.
    """
    decoder = config.get_text_config(decoder=True)
    own = override(config.model_type).facts.get("cache_kinds", {})
    kinds = {kind for layer in _layer_types(decoder) for kind in _of(layer, decoder)}
    if isinstance(own, dict):
        kinds = {str(own.get(kind, kind)) for kind in kinds}
    if config.is_encoder_decoder:
        kinds.add("encoder-decoder")
    return tuple(sorted(kinds))


def _layer_types(decoder: PreTrainedConfig) -> Sequence[str]:
    """The type of every layer that keeps something: as listed, or the same for all, told by which window is set."""
    for name in ("layer_types", "layers_block_type"):
        listed: Any = getattr(decoder, name, None)
        if listed is not None:
            shared = int(getattr(decoder, "num_kv_shared_layers", 0) or 0)
            return list(listed)[: len(listed) - shared]
    if getattr(decoder, "sliding_window", None) is not None:
        return ["sliding_attention"]
    return ["full_attention" if getattr(decoder, "attention_chunk_size", None) is None else "chunked_attention"]


def _of(layer_type: str, decoder: PreTrainedConfig) -> tuple[str, ...]:
    if layer_type not in RECURRENT:
        return BY_LAYER_TYPE.get(layer_type, ("full",))
    convolves = any(getattr(decoder, name, None) for name in CONVOLUTIONS)
    return ("convolutional", "recurrent") if convolves else ("recurrent",)
