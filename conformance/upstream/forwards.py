"""One forward after another, prepared by `generate`'s own helpers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.upstream.caches import cache_name

if TYPE_CHECKING:
    import torch

# The inputs of a forward that say where its tokens stand; the last in 5.0 to 5.2, where it has no batch.
UNBATCHED = ("cache_position",)
POSITIONS = ("position_ids", "decoder_position_ids", *UNBATCHED)
# Those that hold something for each new token, in their last dimension.
PER_TOKEN = ("input_ids", "decoder_input_ids", *POSITIONS)
# What `generate` has made of images and sound, in the releases that encode them before the prefill.
ENCODED = ("mm_encoder_outputs",)
LOGITS_KEPT = ("logits_to_keep", "num_logits_to_keep")
FIRST = "is_first_iteration"


def prefill(model: Any, input_ids: torch.Tensor, generation_config: Any, kwargs: dict[str, Any]) -> Any:
    """The first forward over the prompt, prepared by `generate`'s own helper. Returns the model's outputs."""
    return model._prefill(input_ids, generation_config, kwargs)


def keep_cache(outputs: Any, kwargs: dict[str, Any]) -> None:
    """Hand the cache of one forward to the next, under the name that the model gives it."""
    name = cache_name(outputs)
    if name is not None:
        kwargs[name] = outputs[name]


def place(model: Any, kwargs: dict[str, Any], begin: int, end: int) -> None:
    """Tell the releases that keep positions in `cache_position` (before 5.3) which ones come next."""
    if "cache_position" in inspect.signature(model.prepare_inputs_for_generation).parameters:
        import torch

        kwargs["cache_position"] = torch.arange(begin, end)


def first_inputs(model: Any, input_ids: torch.Tensor, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a forward of the first iteration, over what `kwargs` place."""
    prepared: dict[str, Any] = model.prepare_inputs_for_generation(input_ids, **{FIRST: True}, **kwargs)
    return prepared


def next_inputs(model: Any, input_ids: torch.Tensor, kwargs: dict[str, Any], count: int) -> dict[str, Any]:
    """The inputs of the forward over the last `count` tokens (over all of them without a cache)."""
    size = count if kwargs.get("use_cache", True) else None
    prepared: dict[str, Any] = model.prepare_inputs_for_generation(input_ids, next_sequence_length=size, **kwargs)
    return prepared


def advance(model: Any, outputs: Any, kwargs: dict[str, Any], input_ids: Any, count: int) -> dict[str, Any]:
    """The loop's arguments for the next forward, over the last `count` of `input_ids`.

    In 5.0 to 5.2 `generate` keeps positions in `cache_position` and counts on one token at a time.
    """
    encoder_decoder = bool(model.config.is_encoder_decoder)
    kwargs = model._update_model_kwargs_for_generation(
        outputs, kwargs, is_encoder_decoder=encoder_decoder, num_new_tokens=count
    )
    if "cache_position" in kwargs and count > 1:
        import torch

        last, mask = kwargs["cache_position"][-1:], "decoder_attention_mask" if encoder_decoder else "attention_mask"
        kwargs["cache_position"] = torch.arange(int(last) - count + 1, int(last) + 1, device=input_ids.device)
        if kwargs.get(mask) is not None:
            kwargs[mask] = torch.nn.functional.pad(kwargs[mask], (0, count - 1), value=1)
        positions = kwargs.get("decoder_position_ids" if encoder_decoder else "position_ids")
        if positions is not None and positions.shape[-1] < count:  # 5.2 keeps the last one only
            name = "decoder_position_ids" if encoder_decoder else "position_ids"
            kwargs[name] = positions[..., -1:] + torch.arange(1 - count, 1)
    return kwargs


def kwargs_at(
    model: Any, outputs: Any, kwargs: dict[str, Any], input_ids: torch.Tensor, start: int, count: int
) -> dict[str, Any]:
    """The loop's arguments for a forward over the last `count` of `input_ids`, from those of the prefill.

    `start`: length of the prefill. What was fed between and taken back again leaves no trace in them.
    """
    import torch

    encoder_decoder, length = bool(model.config.is_encoder_decoder), input_ids.shape[1]
    kwargs = model._update_model_kwargs_for_generation(
        outputs, dict(kwargs), is_encoder_decoder=encoder_decoder, num_new_tokens=length - start
    )
    if "cache_position" in kwargs:  # 5.0 counts on one token at a time
        kwargs["cache_position"] = torch.arange(length - count, length, device=input_ids.device)
        mask = "decoder_attention_mask" if encoder_decoder else "attention_mask"
        if kwargs.get(mask) is not None:
            kwargs[mask] = torch.nn.functional.pad(kwargs[mask], (0, length - start - 1), value=1)
    return kwargs


def ask_for_logits(inputs: dict[str, Any], count: int) -> None:
    """Have prepared inputs ask for the logits of the last `count` positions, as assisted decoding does."""
    for name in LOGITS_KEPT:
        if name in inputs:
            inputs[name] = count


def ask_for_fewer_logits(inputs: dict[str, Any], most: int) -> None:
    """Have inputs that ask for the logits of some number of positions ask for `most` at most."""
    for name in LOGITS_KEPT:
        if isinstance(inputs.get(name), int):
            inputs[name] = min(inputs[name], most)


@cache
def tells_first(model_class: type) -> bool:
    """Whether preparation is told that it is of the first iteration."""
    return FIRST in inspect.signature(model_class.prepare_inputs_for_generation).parameters  # type: ignore[attr-defined]


def told_first(kwargs: Mapping[str, Any]) -> bool:
    """Whether these arguments of a preparation tell it that it is of the first iteration."""
    return bool(kwargs.get(FIRST))


def encoded_positions(kwargs: Mapping[str, Any]) -> int:
    """Of how many positions of the prompt these inputs of a forward bring what was encoded before."""
    given = (output for name in ENCODED for output in (kwargs.get(name) or {}).values() if output is not None)
    features = (output.pooler_output for output in given)
    return sum(
        part.numel() // part.shape[-1]
        for found in features
        for part in (found if isinstance(found, (list, tuple)) else [found])
    )
