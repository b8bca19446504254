# ruff: noqa: INP001
"""Given tokens fed onto a cache, as `conformance.reference.decode.forced_loop` does."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import SETTINGS, make_model


def feed(inputs: dict[str, Any], tokens: list[list[int]], groups: list[int]) -> list[torch.Tensor]:
    """Logits after the prompt, and after each of the tokens that follow it, `groups[i]` of them in forward i."""
    logits: list[torch.Tensor] = []

    def loop(model: Any, input_ids: Any, generation_config: Any, logits_processor: Any, **kwargs: Any) -> Any:
        kwargs.pop("stopping_criteria", None)
        out = model._prefill(input_ids, generation_config, kwargs)
        logits.append(out.logits[:, -1])
        for part in torch.tensor(tokens, dtype=torch.long).split(groups, dim=1):
            size = part.shape[1]
            kwargs = model._update_model_kwargs_for_generation(out, kwargs, model.config.is_encoder_decoder, size)
            input_ids = torch.cat([input_ids, part], dim=1)
            args = model.prepare_inputs_for_generation(input_ids, next_sequence_length=size, **kwargs)
            args.update({name: size for name in args if name.endswith("logits_to_keep")})
            out = model(**args, return_dict=True)
            logits.extend(out.logits[:, -size:].unbind(dim=1))
        return input_ids

    forced = {**SETTINGS, "max_new_tokens": sum(groups) + 1, "do_sample": False, "eos_token_id": None}
    make_model().generate(**inputs, generation_config=GenerationConfig(**forced), custom_generate=loop)
    return logits
