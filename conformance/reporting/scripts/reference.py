# ruff: noqa: INP001
"""The installed decoding loop, against the plainest one."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ROWS, SEED, SETTINGS, batch, fault, make_model


def plain_loop(model: Any, input_ids: Any, logits_processor: Any, stopping_criteria: Any, **kwargs: Any) -> Any:
    """Greedy decoding or sampling with a cache, one token at a time, stopping at once."""
    config = kwargs.pop("generation_config")
    finished, steps = torch.zeros(len(input_ids), dtype=torch.bool), []
    out = model._prefill(input_ids, config, kwargs)
    while not finished.all():
        if steps:
            args = model.prepare_inputs_for_generation(input_ids, next_sequence_length=1, **kwargs)
            out = model(**args, return_dict=True)
        kwargs = model._update_model_kwargs_for_generation(out, kwargs, model.config.is_encoder_decoder)
        logits = out.logits[:, -1].to(torch.float32, copy=True)
        scores = logits_processor(input_ids, logits)
        steps.append((logits, scores))
        tokens = torch.multinomial(scores.softmax(-1), 1)[:, 0] if config.do_sample else scores.argmax(-1)
        tokens = torch.where(finished, SETTINGS["pad_token_id"], tokens)
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
        finished = finished | stopping_criteria(input_ids, None)
    return {"sequences": input_ids, "logits": [s[0] for s in steps], "scores": [s[1] for s in steps]}


def main() -> None:
    """Decode with the loop of `generate`, and with the one above inside the same `generate`."""
    outcomes = []
    for how in ({"custom_generate": plain_loop}, {}):
        torch.manual_seed(SEED)
        out = make_model().generate(**batch(ROWS), generation_config=GenerationConfig(**SETTINGS), **how)
        outcomes.append({name: out[name] for name in ("sequences", "logits", "scores")})
    for name, expected in outcomes[0].items():
        for step, (e, g) in enumerate(zip(expected, outcomes[1][name])):
            if e.shape != g.shape or not torch.allclose(e, g, rtol=0, atol=0, equal_nan=True):
                fault(f"{name} {step}: {e.tolist()}", g.tolist())
