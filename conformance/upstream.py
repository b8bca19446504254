"""Every difference between releases of torch, transformers and accelerate that the harness has to know.

Nothing else in the project asks for a version or tries one name after another.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# The keyword that holds the cache: 5.24 on; before; before, in Mamba models; in models of their own kind.
CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state", "mems", "past_buckets_states")
PACKAGES = ("transformers", "torch", "accelerate", "hypothesis", "pytest", "numpy")
OLDEST, NEWEST_TESTED = "5.0.0", "5.24.0"


def versions() -> dict[str, str]:
    """Installed versions, without importing anything: package → version or 'absent'."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def as_numbers(version: str) -> tuple[int, ...]:
    """A version's release as numbers; a development build counts as its release."""
    parts = (part for part in version.split("+")[0].split(".")[:3] if part[:1].isdigit())
    return tuple(int("".join(c for c in part if c.isdigit())) for part in parts)


def release(package: str = "transformers") -> tuple[int, ...]:
    """The installed release of a package as numbers."""
    return as_numbers(versions()[package])


def quiet() -> None:
    """One thread, no hub, no advice on the terminal: what every process that builds models sets first."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module=r"transformers(\..*)?")
    warnings.filterwarnings("ignore", module=r"torch(\..*)?")
    logging.getLogger("transformers").setLevel(logging.ERROR)


def cache_of(outputs: Any) -> Any:
    """The cache in a model's or `generate`'s output, or None."""
    for name in CACHE_NAMES:
        cache = outputs.get(name) if hasattr(outputs, "get") else getattr(outputs, name, None)
        if cache is not None:
            return cache
    return None


def cache_name(mapping: Any) -> str | None:
    """The keyword under which `mapping` holds a cache, or None."""
    return next((name for name in CACHE_NAMES if mapping.get(name) is not None), None)


@cache
def output_cache_name(output_class: type) -> str:
    """The field of a `generate` output class that holds the cache."""
    fields = getattr(output_class, "__dataclass_fields__", {})
    return next(name for name in CACHE_NAMES if name in fields)


def has_default_cache(model: Any) -> bool:
    """Whether `generate` makes the cache of this model itself, so that its class can be chosen."""
    for name in ("_supports_default_dynamic_cache", "_supports_default_dynamic_cache_"):
        if hasattr(model, name):
            return bool(getattr(model, name)())
    return True


def prefill(model: Any, input_ids: torch.Tensor, generation_config: Any, kwargs: dict[str, Any]) -> Any:
    """The first forward over the prompt, prepared by `generate`'s own helper. Returns the model's outputs."""
    return model._prefill(input_ids, generation_config, kwargs)


@cache
def _takes_next_sequence_length(model_class: type) -> bool:
    return "next_sequence_length" in inspect.signature(model_class.prepare_inputs_for_generation).parameters  # type: ignore[attr-defined]


def next_inputs(model: Any, input_ids: torch.Tensor, kwargs: dict[str, Any], count: int) -> dict[str, Any]:
    """The inputs of the forward over the last `count` tokens (over all of them without a cache)."""
    size = count if kwargs.get("use_cache", True) else None
    prepared: dict[str, Any] = model.prepare_inputs_for_generation(input_ids, next_sequence_length=size, **kwargs)
    return prepared


def advance(model: Any, outputs: Any, kwargs: dict[str, Any], input_ids: Any, count: int) -> dict[str, Any]:
    """The loop's arguments for the next forward, over the last `count` of `input_ids`.

    In 5.0 `generate` keeps positions in `cache_position` and counts on one token at a time.
    """
    encoder_decoder = bool(model.config.is_encoder_decoder)
    kwargs = model._update_model_kwargs_for_generation(
        outputs, kwargs, is_encoder_decoder=encoder_decoder, num_new_tokens=count
    )
    if "cache_position" in kwargs and count > 1:
        import torch

        length, mask = input_ids.shape[1], "decoder_attention_mask" if encoder_decoder else "attention_mask"
        kwargs["cache_position"] = torch.arange(length - count, length, device=input_ids.device)
        if kwargs.get(mask) is not None:
            kwargs[mask] = torch.nn.functional.pad(kwargs[mask], (0, count - 1), value=1)
    return kwargs


def ask_for_logits(inputs: dict[str, Any], count: int) -> None:
    """Have prepared inputs ask for the logits of the last `count` positions, as assisted decoding does."""
    for name in ("logits_to_keep", "num_logits_to_keep"):
        if name in inputs:
            inputs[name] = count


def static_cache_settings() -> dict[str, Any]:
    """The `GenerationConfig` fields that ask for a static cache without compilation."""
    return {"cache_implementation": "static", "disable_compile": True}


def cache_argument(model: Any) -> str:
    """The keyword under which `generate` takes a cache for this model."""
    taken = inspect.signature(type(model).forward).parameters
    return next((name for name in CACHE_NAMES if name in taken), "past_key_values")


# How the installed release is made to use a mechanism that it does not use by itself, and why it may lack one.
MECHANISMS: dict[str, Callable[[], AbstractContextManager[Any]]] = {}
LACKING: dict[str, Callable[[], str | None]] = {}


def mechanism(name: str) -> AbstractContextManager[Any]:
    """For the length of the block, the installed `generate` decodes by this mechanism."""
    return MECHANISMS.get(name, nullcontext)()


def lacks(name: str) -> str | None:
    """Why the installed release has no such mechanism, or None where it has."""
    return LACKING.get(name, lambda: None)()


@cache
def forward_parameters(model_class: type) -> frozenset[str]:
    """The names that the forward of a model class takes."""
    return frozenset(inspect.signature(model_class.forward).parameters)  # type: ignore[attr-defined]


def model_class(class_name: str) -> Any:
    """The model class of this name."""
    return getattr(importlib.import_module("transformers"), class_name)


def no_progress_bars() -> None:
    """Saving and loading draw none."""
    importlib.import_module("transformers.utils.logging").disable_progress_bar()


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


@cache
def crop_takes_a_count() -> bool:
    """Whether `crop(-j)` and `crop(0)` take j and no tokens back; before 5.14 zero was the length to keep."""
    from transformers.cache_utils import Cache

    return "tokens_to_remove" in inspect.signature(Cache.crop).parameters


def says_croppable(model: Any, a_cache: Any) -> bool | None:
    """Whether a cache says that `crop` can put it back; before 5.17 only models did, by saying what they are not."""
    said = getattr(a_cache, "is_croppable", None)
    if said is not None:
        return bool(said)
    return False if getattr(model, "_is_stateful", False) else None


def cache_layers(a_cache: Any) -> list[Any]:
    """The layers of a cache; of an encoder-decoder cache those of its self-attention."""
    own = getattr(a_cache, "self_attention_cache", a_cache)
    return list(getattr(own, "layers", ()))


def mask_sizes(layer: Any, count: int, length: int) -> tuple[int, ...] | None:
    """What a layer tells the mask for a forward of `count` tokens; None where it has no mask."""
    import torch

    ask = getattr(layer, "get_mask_sizes", None)
    if ask is None:
        return None
    by_position = "cache_position" in inspect.signature(ask).parameters
    sizes = ask(torch.arange(length, length + count)) if by_position else ask(count)
    return tuple(int(size) for size in sizes)
