"""What an integer attribute of a config means, told by its name alone, and the size it gets in a tiny model.

The rules follow the naming habits of the 5.x configs. A rule is a pattern over the whole attribute name and a formula:
a product of numbers and of names of `Sizes`. The first pattern that fits wins. What no pattern fits keeps its default,
as does everything that is absent, zero or negative by default, since those switch a feature off.
"""

from __future__ import annotations

import re
from functools import cache
from math import prod

from conformance.architectures.sizes import Sizes

RULES: tuple[tuple[str, str], ...] = (
    # Names that a later, wider pattern would misread.
    (r"max_inference_chunksize|acoustic_tokenizer_chunk_size|audio_chunk_size|speech_encoder_chunk_size", ""),
    (r"num_(mel_bins|channels|classes|labels|codebooks|quantizers|hashes|buckets|lstm_layers|residual_layers)", ""),
    (r"vocoder_\w+|unit_hifi_gan_\w+|variance_predictor_\w+|num_adapter_layers|n_langs", ""),
    # Positions before layers and sizes: "max_position_embeddings", "n_positions", "max_source_positions".
    (r"max_\w*position\w*|\w*_max_position_embeddings|n_positions|n_ctx|max_seq_len|model_max_length", "positions"),
    (r"max_(source|target)_positions|context_length|max_pos_emb", "positions"),
    # Vocabularies.
    (r"(\w+_)?vocab(_size)?(_\w+)?|n_vocab", "vocabulary"),
    # Counts of layers.
    (r"(\w+_)?num_(\w+_)?hidden_layers|(\w+_)?n_?layers?|(\w+_)?num_(encoder_|decoder_)?layers|num_blocks", "layers"),
    (r"(\w+_)?(encoder|decoder)_layers|depth", "layers"),
    # How many leading layers are of the first kind: one, so that both kinds appear.
    (r"first_k_dense_replace|num_dense_layers|max_window_layers|moe_layer_start_index", "1"),
    # Heads.
    (r"(\w+_)?num_(global_)?key_value_heads|(\w+_)?num_kv_heads|kv_n_heads|linear_num_key_heads", "kv_heads"),
    (r"index(er)?_n_heads", "heads"),
    (r"(\w+_)?(num_)?(\w+_)?attention_heads(_per_layer)?|n_heads?|num_heads|mamba_n(um)?_heads|n_mamba_heads", "heads"),
    (r"linear_num_(value_)?heads|num_query_groups", "heads"),
    # Of one head. State-space layers spread twice the hidden size over the heads (`expand` is 2 everywhere).
    (r"mamba_d_head|mamba_head_dim|mamba_headdim", "2*head_dim"),
    (r"mamba_d_ssm", "2*hidden"),
    (r"qk_rope_head_dim", "rope_dim"),
    (r"qk_head_dim", "split_head_dim"),
    (r"(\w+_)?head_(dim|size)|d_kv|dim_head|d_head|kv_channels|rotary_dim|attention_head_size", "head_dim"),
    # Recurrent and convolutional layers.
    (r"mamba_d_state|ssm_state_size|state_size", "state"),
    (r"(mamba_|ssm_)?n_?groups", "1"),
    (r"mamba_dt_rank|time_step_rank", "rank"),
    (r"conv_kernel|conv1d_width|mamba_d_conv|conv_L_cache|linear_conv_kernel_dim", "conv_kernel"),
    (r"conv_kernel_size|short_conv_kernel_size|ple_conv_kernel_size", "conv_kernel"),
    # Chunks, blocks, windows, selectors. Two of the windows are halved by their models.
    (r"(mamba_|attention_)?chunk_size|(local|lsh)_attn_chunk_length|floor_scale", "chunk"),
    # How many tokens a layer of that kind compresses into one, listed by kinds of layer: two sizes, both soon crossed.
    (r"heavily_compressed_attention", "2*chunk"),
    (r"compressed_sparse_attention", "chunk"),
    (r"local_attention|attention_window", "2*window"),
    (r"sliding_window(_size)?|attention_window_size|local_radius|window_size", "window"),
    (r"local_attention_window_len", "window"),
    (r"index_topk|keep_window_size", "index_topk"),
    # Experts.
    (r"(moe_)?num_(local_|routed_)?experts|n_routed_experts|moe_num_experts|zero_expert_num", "experts"),
    (r"num_experts_per_tok(en)?|moe_top_?k|moe_k|top_k_experts", "top_k"),
    (r"n_group|topk_group|num_expert_group|(moe_)?(n|num)_shared_experts", "1"),
    # Low ranks.
    (r"\w*lora_rank|\w*_rank|hc_lowrank|ple_embed_dim|d_rel", "rank"),
    # Feed-forward sizes before hidden sizes: "intermediate_size_mlp", "moe_intermediate_size", "decoder_ffn_dim".
    (r"(\w+_)?intermediate_(size|dim)(_\w+)?|(\w+_)?ffn_(dim|hidden_size)|n_inner|dff|d_ff|d_inner", "intermediate"),
    (r"dim_ff|feed_forward_size|mlp_dim|prompt_mid_dim", "intermediate"),
    # Hidden sizes, and every size that has to meet one.
    (r"(\w+_)?hidden_(size|dim)(_global|_per_layer_input)?|d_model|n_embd|emb_dim|embed_dim|lru_width", "hidden"),
    (r"(word_|input_|output_)?embed(ding)?_(proj_)?(dim|size)|word_embed_proj_dim|output_dim|dim_model_base", "hidden"),
    (r"projector_(in|out)put_dim|vision_output_dim|adapter_(in|out)_dim|adapter_input_size", "hidden"),
    (r"(unit|lang|spkr)_embed_dim", "hidden"),
)
_COMPILED = tuple((re.compile(pattern), formula) for pattern, formula in RULES)

# Kernels that some releases insist on when they are asked for; what replaces them computes the same.
SWITCHED_OFF = ("use_mamba_kernels",)

# By default a beginning and a padding token exist or not; an end token is taken away, so that a model never stops by
# itself: the harness hands over the end token of each case. Other special tokens (images, audio) keep ids that lie
# outside the tiny vocabulary, so that no drawn prompt means one of them.
BOS, PAD, DECODER_START = 1, 0, 2


@cache
def formula_of(attribute: str) -> str:
    """The formula for an attribute name, or "" where no rule says anything about it."""
    for pattern, formula in _COMPILED:
        if pattern.fullmatch(attribute):
            return formula
    return ""


def evaluate(formula: str, sizes: Sizes, layers: int) -> int:
    """The value of a product such as `2*head_dim`, less a number in `vocabulary-1`.

    `layers` is the depth after cutting, not the number drawn.
    """
    product, _, less = formula.partition("-")
    return prod(_factor(name, sizes, layers) for name in product.split("*")) - int(less or 0)


def _factor(name: str, sizes: Sizes, layers: int) -> int:
    if name.isdigit():
        return int(name)
    if name in ("layers", "half_layers"):
        return layers if name == "layers" else layers // 2
    return int(getattr(sizes, name))


def special_token(attribute: str, default: object) -> tuple[bool, int | None]:
    """Whether an attribute is one of the ids that generation looks at, and its value in a tiny model."""
    if attribute in ("eos_token_id", "forced_eos_token_id") and default is not None:
        return True, None
    if not isinstance(default, int) or isinstance(default, bool):
        return False, None
    if attribute == "pad_token_id":
        return True, PAD
    if attribute == "bos_token_id":
        return True, BOS
    return attribute == "decoder_start_token_id", DECODER_START
