"""Special tokens as plain ints: what ends a row, fills it up and starts it, without reading a value on `meta`.

The rule is that of the installed `_prepare_special_tokens` (transformers, `generation/utils.py`), in another
order: every id becomes plain ints first, warnings and refusals are told from those, and tensors are built last,
on the device asked for. So nothing is ever read back from a tensor that was made here, and a model whose
parameters are on `meta` can have its special tokens prepared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np
import torch

from conformance import upstream
from conformance.call import Call
from conformance.reference.misplaced import refuse_misplaced

FIELDS = ("bos", "eos", "pad", "decoder_start")
Ids = int | tuple[Any, ...]  # nested as the shape of the tensor is; () is no id at all


class MetaSafeTensorError(RuntimeError):
    """A special token is a tensor on `meta`, so that nobody can know its value."""

    def __init__(self, field: str, shape: Sequence[int]) -> None:
        super().__init__(
            f"{field} is a tensor of shape {tuple(shape)} on the meta device, which holds no value; "
            f"pass plain integers instead, as in {field}={'2' if not shape else '[2]'}"
        )


@dataclass(frozen=True)
class SpecialTokens:
    """The prepared tokens: long tensors on one device, or None. `eos` is one-dimensional, the others as given."""

    bos: torch.Tensor | None
    eos: torch.Tensor | None
    pad: torch.Tensor | None
    decoder_start: torch.Tensor | None


def as_ints(field: str, given: Any) -> Ids | None:
    """An id as plain ints: a number, or a nested tuple. Whole floats and NumPy's count; an empty list is no id.

    Raises MetaSafeTensorError for a tensor on `meta`, ValueError for a fraction, TypeError for what is no number.
    """
    if given is None:
        return None
    if isinstance(given, torch.Tensor):
        if given.is_meta:
            raise MetaSafeTensorError(field, given.shape)
        given = given.tolist()
    if isinstance(given, np.ndarray | np.generic):
        given = given.tolist()
    if isinstance(given, list | tuple | range):
        return tuple(_part(field, part) for part in given) or None
    if not isinstance(given, int | float):
        raise TypeError(f"{field} must be an integer or a list of integers, not {type(given).__name__}: {given!r}")
    if not math.isfinite(given) or given != int(given):
        raise ValueError(f"{field} is {given}; a token id is a whole number")
    return int(given)


def _part(field: str, given: Any) -> Ids:
    ids = as_ints(field, given)
    if ids is None:
        raise TypeError(f"{field} must be an integer or a list of integers, without {given!r} in it")
    return ids


def flat(ids: Ids | None) -> list[int]:
    """All numbers of an id."""
    if isinstance(ids, tuple):
        return [number for part in ids for number in flat(part)]
    return [] if ids is None else [ids]


def prepare(
    generation_config: Any,
    *,
    encoder_decoder: bool,
    device: torch.device | str,
    has_mask: bool | None = None,
    batch_size: int | None = None,
) -> SpecialTokens:
    """The special tokens of a generation config, which stays as it is.

    has_mask: whether the caller passed an attention mask (None: unknown); batch_size: rows of the prompt. Raises
    MetaSafeTensorError, ValueError for a fraction, and for an encoder-decoder model without a start token.
    """
    given = {name: getattr(generation_config, f"{name}_token_id") for name in FIELDS}
    ids = {name: as_ints(f"{name}_token_id", value) for name, value in given.items()}
    if isinstance(ids["eos"], int):
        ids["eos"] = (ids["eos"],)
    if encoder_decoder and ids["decoder_start"] is None:
        ids["decoder_start"] = ids["bos"]
    was_pad = ids["pad"]
    if ids["pad"] is None and isinstance(ids["eos"], tuple):
        ids["pad"] = ids["eos"][0]
    unmasked = has_mask is False and (
        batch_size is None or batch_size > 1 or not upstream.special_tokens_know_the_batch()
    )
    if was_pad is None and ids["eos"] is not None and ids["pad"] is not None:
        _warn_of_guessed_pad(ids["pad"], unmasked)
    if encoder_decoder and ids["decoder_start"] is None:
        raise ValueError("an encoder-decoder model needs `decoder_start_token_id` or `bos_token_id`")
    _warn_of_unlikely_ids(ids, unmasked, _floating(given["eos"]))
    return SpecialTokens(**{name: _tensor(value, device) for name, value in ids.items()})


def _tensor(ids: Ids | None, device: torch.device | str) -> torch.Tensor | None:
    return None if ids is None else torch.tensor(ids, dtype=torch.long, device=device)


def _floating(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.is_floating_point()


def _warn_of_guessed_pad(pad: Ids | None, unmasked: bool) -> None:
    logger = upstream.generation_logger()
    if unmasked:
        logger.warning("The attention mask and the pad token id were not set: both are guessed, perhaps wrongly.")
    if upstream.announces_pad_token():
        logger.warning(f"Setting `pad_token_id` to `eos_token_id`: {pad}.")


def _warn_of_unlikely_ids(ids: dict[str, Any], unmasked: bool, floating: bool) -> None:
    logger, eos = upstream.generation_logger(), flat(ids["eos"])
    if unmasked and set(flat(ids["pad"])) & set(eos):
        logger.warning("The attention mask is not set, and cannot be inferred where the pad token is an eos token.")
    if floating or min(eos, default=0) < 0:
        logger.warning(f"`eos_token_id` should consist of positive integers, but is {eos}.")


def prepared_for(
    model: Any,
    generation_config: Any,
    *,
    has_mask: bool | None = None,
    device: torch.device | str | None = None,
    batch_size: int | None = None,
) -> dict[str, torch.Tensor | None]:
    """The tokens by name that a model needs, on its own device where none is named. Raises as `prepare` does."""
    return vars(
        prepare(
            generation_config,
            encoder_decoder=bool(model.config.is_encoder_decoder),
            device=model.device if device is None else device,
            has_mask=has_mask,
            batch_size=batch_size,
        )
    )


class MetaSafeSpecialTokens:
    """A mixin: ahead of a model class, its `generate` prepares special tokens as this module does."""

    def _prepare_special_tokens(
        self: Any,
        generation_config: Any,
        kwargs_has_attention_mask: bool | None = None,
        device: torch.device | str | None = None,
        batch_size: int | None = None,
    ) -> None:
        """What `generate` calls, with its own copy of the caller's config, into which the tensors are put."""
        asked: dict[str, Any] = {"has_mask": kwargs_has_attention_mask, "device": device, "batch_size": batch_size}
        for name, tensor in prepared_for(self, generation_config, **asked).items():
            setattr(generation_config, f"_{name}_token_tensor", tensor)


@contextmanager
def used_by(*models: Any) -> Iterator[None]:
    """Have these models (the assistant too, where there is one) prepare special tokens as this module does.

    It is the instances that change, not their classes, so that threads with models of their own do not meet.
    """
    with ExitStack() as stack:
        for model in models:
            stack.callback(_restore(model))
            method = MethodType(MetaSafeSpecialTokens._prepare_special_tokens, model)
            object.__setattr__(model, "_prepare_special_tokens", method)
        yield


def _restore(model: Any) -> Callable[[], None]:
    before = vars(model).get("_prepare_special_tokens")

    def restore() -> None:
        vars(model).pop("_prepare_special_tokens", None)
        if before is not None:
            object.__setattr__(model, "_prepare_special_tokens", before)

    return restore


def generate(model: Any, call: Call) -> Any:
    """The installed `generate` with our special tokens: greedy, sampling, beams, prompt lookup or assisted.

    Raises MisplacedParameterError before anything runs.
    """
    refuse_misplaced(model)
    assistant = call.extras.get("assistant_model")
    with used_by(model, *([] if assistant is None or assistant is model else [assistant])):
        return model.generate(**call.arguments())
