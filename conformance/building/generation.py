"""The generation configs of a case: what the model carries, and what the caller passes to `generate`."""

from __future__ import annotations

from typing import Any

from conformance.case import Settings
from conformance.stopping_settings import stopping_fields


def plain_generation_config(settings: Settings, decoder_start: int | None) -> Any:
    """The config that the model carries: nothing in it may influence a run by accident.

    `decoder_start`: the first token of an encoder-decoder model's decoder; None for the others.
    """
    from transformers import GenerationConfig

    extra = {} if decoder_start is None else {"decoder_start_token_id": decoder_start}
    # A pad token that the caller leaves out would be taken from here.
    pad = None if settings.pad is None else 0
    return GenerationConfig(pad_token_id=pad, bos_token_id=1, **extra)


def callers_fields(settings: Settings, width: int, vocabulary: int, positions: object = None) -> dict[str, Any]:
    """What the caller's `GenerationConfig` is made of; every field that the model could fill in is explicit.

    `width` is the number of tokens that the returned sequences begin with; `positions` how many the model's config
    tells: `generate` decodes no further where it is told no limit, and so it is told one there.
    """
    fields: dict[str, Any] = {
        "eos_token_id": list(settings.eos) or None,
        "pad_token_id": settings.pad,
        "do_sample": settings.do_sample,
        "num_beams": 1,
        "use_cache": True,
        "return_dict_in_generate": True,
        "output_scores": True,
        "output_logits": True,
        "output_attentions": settings.output_attentions,
        "output_hidden_states": settings.output_hidden_states,
        **stopping_fields(settings, width, vocabulary),
    }
    unlimited = "max_new_tokens" not in fields and "max_length" not in fields
    if unlimited and isinstance(positions, int) and positions < width + settings.max_new_tokens:
        fields["max_new_tokens"] = settings.max_new_tokens
    if settings.repetition_penalty != 1.0:
        fields["repetition_penalty"] = settings.repetition_penalty
    if settings.do_sample:
        fields |= {"top_k": 0, "top_p": 1.0, "temperature": 1.0}
    return fields
