# ruff: noqa: INP001
"""The installed decoding loop, against the plainest one."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import INPUTS, SEED, SETTINGS, make_model

UNSEEN = ("rng", "streamed", "cache", "states")
ROWS = "all"
WHOLE_OUTCOME = True


def loop(
    model: Any,
    input_ids: torch.Tensor,
    generation_config: Any,
    logits_processor: Any,
    stopping_criteria: Any,
    **kw: Any,
) -> Any:
    """The plainest loop for `generate`: with a cache, one token at a time, stopping at once."""
    finished, logits, scores = torch.zeros(len(input_ids), dtype=torch.bool), [], []
    out = model._prefill(input_ids, generation_config, kw)
    while True:
        kw = model._update_model_kwargs_for_generation(out, kw, is_encoder_decoder=model.config.is_encoder_decoder)
        logits.append(out.logits[:, -1].to(torch.float32, copy=True))
        scores.append(logits_processor(input_ids, logits[-1]))
        sample = generation_config.do_sample
        tokens = torch.multinomial(scores[-1].softmax(-1), 1)[:, 0] if sample else scores[-1].argmax(-1)
        tokens = torch.where(finished, SETTINGS["pad_token_id"], tokens)
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
        finished = finished | stopping_criteria(input_ids, tuple(scores))
        if finished.all():
            return {"sequences": input_ids, "logits": logits, "scores": scores}
        args = model.prepare_inputs_for_generation(input_ids, next_sequence_length=1, **kw)
        out = model(**args, return_dict=True)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes of the loop above, inside `generate`, and of the loop that `generate` has itself."""
    outs = []
    for how in ({"custom_generate": loop}, {}):
        torch.manual_seed(SEED)
        out = make_model().generate(**INPUTS, generation_config=GenerationConfig(**SETTINGS), **how)
        outs.append({name: str([step.tolist() for step in out[name]]) for name in ("sequences", "logits", "scores")})
    return outs[0], outs[1]
