"""What `generate` is told about a steering: fields of its config, and keywords."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from conformance.plans.steering import PLAIN, Steering
from conformance.steering.warpers import RULES

WATERMARK = {"greenlist_ratio": 0.25, "bias": 2.0}  # whatever else it is made of is left to its defaults


def words(told: Sequence[tuple[int, int]], prompt: Sequence[int]) -> list[list[int]]:
    """Words by their place in a prompt, as ids; one that is the same as another is left out."""
    found = ([*prompt[len(prompt) - back :], token] for back, token in told)
    return [list(word) for word in dict.fromkeys(tuple(word) for word in found)]


def config_fields(how: Steering, prompt: Sequence[int]) -> dict[str, Any]:
    """Fields of the `GenerationConfig`; `prompt` are the ids of the first row, or of its decoder."""
    fields: dict[str, Any] = {
        "repetition_penalty": (how.repetition, PLAIN.repetition),
        "encoder_repetition_penalty": (how.encoder_repetition, PLAIN.encoder_repetition),
        "no_repeat_ngram_size": (how.ngrams, 0),
        "encoder_no_repeat_ngram_size": (how.encoder_ngrams, 0),
        "sequence_bias": ([[word, how.weight] for word in words(how.bias, prompt)], []),
        "bad_words_ids": (words(how.bad_words, prompt), []),
        "min_new_tokens": (how.min_new, 0),
        "suppress_tokens": (list(how.suppress), []),
        "begin_suppress_tokens": (list(how.suppress_first), []),
        "renormalize_logits": (how.renormalize, False),
        "temperature": (how.temperature, 1.0),
        **{name: (getattr(how, name), getattr(PLAIN, name)) for name in RULES},
    }
    told = {name: value for name, (value, plain) in fields.items() if value != plain}
    if how.decay and how.eos:
        told["exponential_decay_length_penalty"] = (how.decay_after, how.decay)
    return told


def keywords(how: Steering, vocabulary: int) -> dict[str, Any]:
    """Keywords of `generate` beside its config."""
    told: dict[str, Any] = {"watermarking_config": dict(WATERMARK)} if how.watermark else {}
    return told | ({"prefix_allowed_tokens_fn": _rule(how, vocabulary)} if how.allowed else {})


def allowed(how: Steering, row: int, vocabulary: int) -> list[int]:
    """The tokens that a row may say."""
    return sorted({(token + row) % vocabulary for token in how.allowed})


def _rule(how: Steering, vocabulary: int) -> Callable[[int, Any], list[int]]:
    return lambda row, _: allowed(how, row, vocabulary)
