# ruff: noqa: INP001, D102
"""A program of operations on a cache, against a cache that saw only what is left, as `conformance.programs` does."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.frame import CACHE, INPUTS, LEFT, PROGRAM, SETTINGS, make_model

ROWS = "all"
UNSEEN = ("length", "mask sizes", "contents", "stored states", "is_croppable", "layers", ".", "self_", "cross_")
INSTEAD = {"beam": "beams", "assisted": "assisted_cache"}


class Feeder:
    """A model with the cache that `generate` prepares, fed as `generate` feeds it."""

    def __init__(self) -> None:
        self.model, self.cache = make_model(), None
        self.base: dict[str, Any] = {}
        self.model.generate(
            **INPUTS, generation_config=GenerationConfig(**SETTINGS, **CACHE), custom_generate=self.keep
        )

    def keep(self, _: Any, ids: torch.Tensor, generation_config: Any, **kwargs: Any) -> torch.Tensor:
        self.all_ids, self.config, self.kwargs = ids, generation_config, kwargs
        self.kwargs = {k: v for k, v in kwargs.items() if k not in ("logits_processor", "stopping_criteria")}
        self.name = next(
            (n for n in ("cache", "past_key_values", "cache_params") if self.kwargs.get(n) is not None), None
        )
        self.cache, self.sources = self.kwargs.pop(self.name) if self.name else None, list(range(len(ids)))
        return ids

    def of_rows(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value[self.sources] if value.ndim > 1 and len(value) == len(self.all_ids) else value
        return type(value)(**{k: self.of_rows(v) for k, v in value.items()}) if hasattr(value, "keys") else value

    def prefill(self) -> torch.Tensor:
        self.ids, args = self.all_ids[self.sources], {k: self.of_rows(v) for k, v in self.kwargs.items()}
        self.out = self.model._prefill(
            self.ids, self.config, args | ({self.name or "cache": self.cache} if self.cache else {})
        )
        self.cache = self.cache or self.out.get("cache", self.out.get("past_key_values"))
        return self.out.logits[:, -1]

    def feed(self, tokens: list[list[int]]) -> torch.Tensor:
        self.ids, both = torch.cat([self.ids, torch.tensor(tokens)], dim=1), self.model.config.is_encoder_decoder
        kwargs, new = {k: self.of_rows(v) for k, v in self.kwargs.items()}, self.ids.shape[1] - self.all_ids.shape[1]
        kwargs = self.model._update_model_kwargs_for_generation(self.out, kwargs, both, new)
        kwargs[self.name or "cache"] = self.cache
        args = self.model.prepare_inputs_for_generation(self.ids, next_sequence_length=len(tokens[0]), **kwargs)
        self.out = self.model(**args, return_dict=True)
        return self.out.logits[:, -1]


@torch.no_grad()
def logits() -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of one more token on a cache that saw only what is left, and after the program."""
    fresh, used = Feeder(), Feeder()
    for name, *value in PROGRAM:
        if name in ("prefill", "feed"):
            getattr(used, name)(*value)
        else:
            getattr(used.cache, name)(*(torch.tensor(v) if isinstance(v, list) else v for v in value))
        if name == "crop":
            used.ids = used.ids[:, : used.ids.shape[1] + value[0]]
        if name in ("reorder_cache", "batch_select_indices"):
            used.ids, used.sources = used.ids[value[0]], [used.sources[row] for row in value[0]]
    rows, groups, probe = LEFT
    fresh.sources = used.sources = rows
    expected, got = fresh.prefill(), None if probe else used.prefill()
    for group in groups:
        fresh.feed(group)
    return (fresh.feed(probe), used.feed(probe)) if probe else (expected, got)
