"""Every difference between releases of torch, transformers and accelerate that the harness has to know.

Nothing else in the project asks for a version or tries one name after another.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


def length_of(cache: Any) -> int | None:
    """How many positions a cache holds; None where it cannot tell, as purely recurrent ones and those of own kinds."""
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):
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


# What the installed `_prepare_special_tokens` warns of: kind → words that every release says it with.
SPECIAL_TOKEN_WARNINGS = {
    "mask and pad not set": "pad token id were not set",
    "pad is an eos": "pad token is",
    "pad taken from eos": "Setting `pad_token_id`",
    "eos not positive": "should consist of positive integers",
}


def bare_generation_config() -> Any:
    """A generation config in which nothing is set."""
    from transformers import GenerationConfig

    return GenerationConfig()


def generation_logger() -> logging.Logger:
    """The logger that `generate` warns through."""
    return logging.getLogger("transformers.generation.utils")


@contextmanager
def special_token_warnings() -> Iterator[list[str]]:
    """Kinds of warnings said through that logger meanwhile, in order; those given once only are given again."""
    logger = generation_logger()
    kinds: list[str] = []

    def kind_of(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        kinds.extend(kind for kind, words in SPECIAL_TOKEN_WARNINGS.items() if words in message)
        return False  # said to nobody else

    once = getattr(type(logger), "warning_once", None)
    if once is not None and hasattr(once, "cache_clear"):
        once.cache_clear()
    level = logger.level
    logger.addFilter(kind_of)
    logger.setLevel(logging.WARNING)
    try:
        yield kinds
    finally:
        logger.setLevel(level)
        logger.removeFilter(kind_of)


@cache
def special_tokens_know_the_batch() -> bool:
    """Whether special tokens are prepared knowing the number of rows: 5.13 on, warnings for several rows only."""
    from transformers.generation.utils import GenerationMixin

    return "batch_size" in inspect.signature(GenerationMixin._prepare_special_tokens).parameters


def announces_pad_token() -> bool:
    """Whether taking the pad token from the end token is announced by a warning: before 5.13."""
    return not special_tokens_know_the_batch()


def prepare_special_tokens(
    model: Any, generation_config: Any, *, has_mask: bool | None, device: Any, batch_size: int | None
) -> None:
    """The installed preparation: sets `_bos_token_tensor` and its like on the config that it is given."""
    known = {"batch_size": batch_size} if special_tokens_know_the_batch() else {}
    model._prepare_special_tokens(generation_config, has_mask, device=device, **known)


def lacks_python_backend() -> str | None:
    """Why this torch cannot have a device written in Python, or None."""
    if release("torch") < (2, 10):
        return "torch before 2.10 has no Python backend for devices of others"
    return None


def register_python_backend(name: str, module: Any, hooks: Any, guard: Any) -> None:
    """Register a device written in Python; torch calls the way to do it experimental."""
    from torch.utils import backend_registration

    backend_registration._setup_privateuseone_for_python_backend(
        rename=name, backend_module=module, hook=hooks, device_guard=guard
    )


def no_advice_on_loading() -> None:
    """No progress bars and no warnings of what was offloaded, for the rest of the process."""
    no_progress_bars()
    logging.getLogger("accelerate").setLevel(logging.ERROR)


def one_kind_of_experts(model: Any) -> None:
    """Mixtures of experts compute the plain way, which is the same on every device; older releases know no other."""
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")


@contextmanager
def file_reader_knows(name: str) -> Iterator[None]:
    """Inside, accelerate reads offloaded weights to devices called `name`: its reader has a list of those it knows."""
    from accelerate.utils import offload

    plain = offload.safe_open

    def safe_open(path: Any, framework: str, device: Any = "cpu") -> Any:
        return plain(path, framework=framework, device="cpu" if str(device).startswith(name) else device)

    offload.safe_open = safe_open
    try:
        yield
    finally:
        offload.safe_open = plain


@cache
def tells_first(model_class: type) -> bool:
    """Whether preparation is told that it is of the first iteration."""
    return "is_first_iteration" in inspect.signature(model_class.prepare_inputs_for_generation).parameters  # type: ignore[attr-defined]


# What the documentation of assisted generation, of caches and of chunked prefill refuses: name → type, how it begins.
REFUSALS = {
    "several rows": ("ValueError", "assisted generate is only supported for batch_size = 1"),
    "stateful": ("ValueError", "assisted generation is not supported with stateful models"),
    "not croppable": ("ValueError", "Assisted decoding requires a cache that can be cropped"),
    "static cache": ("ValueError", "assisted generate is not supported with Static cache classes"),
    "no cache": ("RuntimeError", "Assisted decoding requires a cache"),
    "use_cache": ("ValueError", "assisted generate requires `use_cache=True`"),
    "chunks without a cache": ("ValueError", "Cannot use prefill chunking without a cache"),
    "images in chunks": ("ValueError", "Chunked prefill cannot split the raw multimodal inputs"),
    "no embeddings": ("ValueError", "You passed `inputs_embeds` to `.generate()`, but the model class"),
}


def refusal(error_type: str, message: str) -> str | None:
    """The name of the documented refusal that an exception is, or None."""
    said = message.lower()
    known = (n for n, (kind, text) in REFUSALS.items() if kind == error_type and said.startswith(text.lower()))
    return next(known, None)


def can_be_put_back(cache: Any) -> bool:
    """Whether a cache says that it can be put back as it was a step ago.

    Caches have a word for it from 5.17 on (`is_croppable`); one that has not cannot say so. Before, every cache of
    the library's own kind counts as one that can.
    """
    from transformers.cache_utils import Cache

    if hasattr(Cache, "is_croppable"):
        return bool(getattr(cache, "is_croppable", False))
    return isinstance(cache, Cache) or hasattr(cache, "self_attention_cache")


def layers_of(cache: Any) -> list[Any]:
    """The layers of a decoder's own cache: none where its kind has no layers."""
    return list(getattr(getattr(cache, "self_attention_cache", cache), "layers", None) or ())


def fixed_size(cache: Any) -> int | None:
    """How many tokens the smallest layer of fixed size holds; None where every layer grows or slides."""
    fixed = [x for x in layers_of(cache) if hasattr(x, "max_cache_len") and not getattr(x, "is_sliding", False)]
    return min((int(layer.max_cache_len) for layer in fixed), default=None)


def records(cache: Any) -> bool:
    """Whether any layer of a cache records its past states."""
    return any(getattr(layer, "record_past", False) for layer in layers_of(cache))


def record_past(cache: Any) -> bool:
    """Have a cache record its past states, as a caller may. Says whether it knows how to."""
    if not hasattr(cache, "activate_past_recording"):
        return False
    cache.activate_past_recording()
    return True


def _deferral() -> AbstractContextManager[Any]:
    """The installed release defers stopping on this device too: only its device condition is replaced."""
    from unittest.mock import patch

    import torch
    from transformers.generation import utils

    rule = utils.DeferredStopCheck.is_supported

    def is_supported(_: Any, *args: Any, **kwargs: Any) -> bool:
        return bool(rule(torch.device("mps"), *args, **kwargs))

    return patch.object(utils.DeferredStopCheck, "is_supported", staticmethod(is_supported))


def _lacks_deferral() -> str | None:
    from transformers.generation import utils

    return None if hasattr(utils, "DeferredStopCheck") else "the release has no deferred stop check (5.17.0 has)"


MECHANISMS["stopping"], LACKING["stopping"] = _deferral, _lacks_deferral


def quantised_exactly(cache: Any, residual: int = 4) -> Any:
    """The cache with its plain layers replaced by quantised ones that lose nothing; itself where it has others.

    Their second storage holds the same numbers, and takes over after `residual` tokens: what is different is only
    where entries are.
    """
    from transformers.cache_utils import DynamicLayer, QuantizedLayer

    class ExactLayer(QuantizedLayer):
        def __init__(self) -> None:
            super().__init__(residual_length=residual)

        def _quantize(self, tensor: torch.Tensor, axis: int = 0) -> torch.Tensor:  # noqa: ARG002
            return tensor.clone()

        def _dequantize(self, tensor: torch.Tensor) -> torch.Tensor:
            return tensor

    if getattr(cache, "layers", None) and all(type(layer) is DynamicLayer for layer in cache.layers):
        cache.layers = [ExactLayer() for _ in cache.layers]
    return cache


def fresh_cache(model: Any, call: Any) -> Any:
    """An empty cache as `generate` makes it for this call; None where it leaves that to the model."""
    caught: list[Any] = []

    def catch(_: Any, input_ids: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        name = cache_name(kwargs)
        caught.append(kwargs[name] if name else None)
        return input_ids

    model.generate(**call.arguments(), custom_generate=catch)
    return caught[0]


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


def is_cache(thing: Any) -> bool:
    """Whether something is a cache of the library's own classes, and no state that a model made up for itself."""
    from transformers.cache_utils import Cache

    return isinstance(thing, Cache)


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
