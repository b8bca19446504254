# ruff: noqa: INP001
"""The scores of returned beams, against scoring their tokens without a cache."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import ALONE, BEAMS, CACHE, SETTINGS, make_model
from conformance.reporting.scripts.recompute import recompute

WHOLE_OUTCOME = True


def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The scores of every beam's tokens from recomputed log-probabilities, and the scores that came with the beams."""
    config = GenerationConfig(**{**SETTINGS, **CACHE, **BEAMS})
    model, sums = make_model(), []
    torch.manual_seed(0)
    out = model.generate(**ALONE, generation_config=config)
    for sequence in out.sequences:
        start = ALONE.get("decoder_input_ids", ALONE["input_ids"]).shape[1]
        scores = recompute(sequence[None, :-1], start).log_softmax(-1)
        ends = [n for n, token in enumerate(sequence[start:].tolist(), 1) if token in (config.eos_token_id or [])]
        length = min(ends, default=len(sequence) - start)
        sums.append(scores.gather(1, sequence[start:, None])[:length].sum() / length**config.length_penalty)
    return torch.stack(sums)[:, None], out.sequences_scores[:, None]
