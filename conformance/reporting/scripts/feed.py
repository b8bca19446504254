# ruff: noqa: INP001
"""Given tokens fed onto a cache, as `conformance.reference.decode.forced_loop` does."""

from __future__ import annotations

from typing import Any

import torch


def feed(
    model: Any,
    input_ids: torch.Tensor,
    generation_config: Any,
    tokens: torch.Tensor,
    groups: list[int],
    logits_processor: Any,
    stopping_criteria: Any,
    **kwargs: Any,
) -> torch.Tensor:
    """A loop inside `generate`: feed the tokens onto its cache, groups[i] in forward i; returns the logits."""
    out = model._prefill(input_ids, generation_config, kwargs)
    logits, both = [out.logits[:, -1:]], model.config.is_encoder_decoder
    for part, size in zip(tokens.split(groups, dim=1), groups):  # noqa: B905
        kwargs = model._update_model_kwargs_for_generation(out, kwargs, is_encoder_decoder=both, num_new_tokens=size)
        input_ids = torch.cat([input_ids, part], dim=1)
        if "cache_position" in kwargs:  # 5.0 counts on one token at a time
            kwargs["cache_position"] = torch.arange(input_ids.shape[1] - size, input_ids.shape[1])
            mask = "decoder_attention_mask" if both else "attention_mask"
            kwargs[mask] = torch.nn.functional.pad(kwargs[mask], (0, size - 1), value=1)
        args = model.prepare_inputs_for_generation(input_ids, next_sequence_length=size, **kwargs)
        out = model(**args | {name: size for name in args if name.endswith("logits_to_keep")}, return_dict=True)
        logits.append(out.logits[:, -size:])
    return torch.cat(logits, dim=1)
