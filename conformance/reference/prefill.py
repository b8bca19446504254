"""The reference prefill: whole, in chunks, onto a cache that already holds a part of the prompt, from embeddings.

The first iteration of a generation and an empty cache are different things: every forward here is of the first
iteration, whatever the cache holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance import upstream
from conformance.reference.decode import plain_loop

NOTHING_NEW = "The cache holds the whole prompt already, and its last position cannot be taken back to be fed again."
TYPES = ("token_type_ids", "mm_token_type_ids", "moe_mm_token_type_ids")  # which tokens are images
Prefill = Callable[[Any, torch.Tensor, Any, dict[str, Any]], Any]


@dataclass(frozen=True)
class Start:
    """Where a generation starts.

    cached: positions that the cache holds already; only_new: the call leaves them out; media: the names of inputs that
    are no text, all of which belong to the first `media_end` positions.
    """

    cached: int = 0
    only_new: bool = False
    media: tuple[str, ...] = ()
    media_end: int = 0

    @classmethod
    def of(cls, call: Any) -> Start:
        """The start that a call's options tell; nothing in the call itself says what a recurrent state has seen."""
        return cls(**{name: call.options[name] for name in cls.__dataclass_fields__ if name in call.options})

    def prefill(self, model: Any, input_ids: torch.Tensor, generation_config: Any, kwargs: dict[str, Any]) -> Any:
        """The forwards over what is not in the cache yet; returns the last one's outputs and completes `kwargs`.

        Mask and positions, shape (batch, cached + new), are completed for tokens that the call leaves out. Where the
        cache holds all of the prompt its last position is fed again: only a forward over it gives the next logits.
        Raises ValueError where the cache cannot be put back for that.
        """
        prompt, name = self._new_part(model, input_ids, kwargs)
        if not prompt.shape[1]:
            _take_back_one(kwargs)
            return replace(self, cached=self.cached - 1).prefill(model, input_ids, generation_config, kwargs)
        total = self.cached + prompt.shape[1]
        _complete(model, kwargs, total)
        outputs, used = None, (*self.media, *upstream.ENCODED)
        for start, end in self._spans(prompt.shape[1], generation_config.prefill_chunk_size):
            given = kwargs if not start else {k: v for k, v in kwargs.items() if k not in used}
            span = (self.cached + start, self.cached + end)
            outputs = model(**_inputs(model, input_ids, name, prompt[:, start:end], span, given), return_dict=True)
            upstream.keep_cache(outputs, kwargs)
        assert outputs is not None
        return outputs

    def _spans(self, length: int, size: int | None) -> list[tuple[int, int]]:
        """Chunks of `size` positions; the first is long enough for all that is no text, which is used there, once."""
        size = size or length
        first = max(size, self.media_end)
        starts = [0, *range(first, length, size)]
        return list(zip(starts, [*starts[1:], length], strict=True))

    def _new_part(self, model: Any, input_ids: torch.Tensor, kwargs: dict[str, Any]) -> tuple[torch.Tensor, str]:
        embeds = None if model.config.is_encoder_decoder else kwargs.get("inputs_embeds")
        prompt, name = (input_ids, "input_ids") if embeds is None else (embeds, "inputs_embeds")
        return (prompt if self.only_new else prompt[:, self.cached :]), name


def _take_back_one(kwargs: dict[str, Any]) -> None:
    name = upstream.cache_name(kwargs)
    if name is None or not upstream.can_be_put_back(kwargs[name]):
        raise ValueError(NOTHING_NEW)
    try:
        kwargs[name].crop(-1)
    except (ValueError, RuntimeError, NotImplementedError) as error:  # a layer without a word for it says so now
        raise ValueError(NOTHING_NEW) from error


def _complete(model: Any, kwargs: dict[str, Any], total: int) -> None:
    """Mask and positions over all `total` positions; ones and consecutive numbers where the call left them out."""
    if model.config.is_encoder_decoder:
        return
    mask, positions = kwargs.get("attention_mask"), kwargs.get("position_ids")
    if mask is not None and mask.shape[1] < total:
        mask = kwargs["attention_mask"] = torch.nn.functional.pad(mask, (total - mask.shape[1], 0), value=1)
    if positions is None or positions.shape[-1] >= total:
        return
    if mask is None:
        mask = positions.new_ones((positions.shape[-2], total))
    counted = mask.long().cumsum(-1) - 1
    kwargs["position_ids"] = counted.masked_fill(mask == 0, 0).expand(*positions.shape[:-1], total)


def _inputs(
    model: Any, input_ids: torch.Tensor, name: str, chunk: torch.Tensor, span: tuple[int, int], kwargs: dict[str, Any]
) -> dict[str, Any]:
    begin, end = span
    upstream.place(model, kwargs, begin, end)
    parts = dict(kwargs)
    if not model.config.is_encoder_decoder:
        if parts.get("attention_mask") is not None:
            name_of_cache = upstream.cache_name(parts)
            kept = upstream.length_of(parts[name_of_cache]) if name_of_cache else 0
            # A recurrent state has no positions to mask: what it needs is the mask of the tokens that are fed.
            parts["attention_mask"] = parts["attention_mask"][:, begin if kept is None else 0 : end]
        for types in TYPES:
            if parts.get(types) is not None:
                parts[types] = parts[types][..., :end]
        if parts.get("position_ids") is not None:
            parts["position_ids"] = parts["position_ids"][..., begin:end]
    if name == "inputs_embeds":
        parts["inputs_embeds"] = chunk
    ids = chunk if name == "input_ids" else input_ids
    return upstream.first_inputs(model, ids, parts)


def generate(model: Any, call: Any) -> Any:
    """Plain decoding after the reference prefill. `call.options`: see `Start`."""
    plain = call.replace(streamer=None)
    loop = plain_loop(call.streamer, Start.of(call).prefill)
    return model.generate(**plain.arguments(), custom_generate=loop)
