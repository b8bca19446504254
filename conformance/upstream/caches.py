"""Where a cache is found, under which name it is given, and how one is made."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# The keyword that holds the cache: 5.24 on; before; before, in Mamba models; in models of their own kind.
CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state", "mems", "past_buckets_states")

# What a cache says of how it would make further layers: assisted decoding of the first releases makes them as they
# are needed, and no layer that is there tells the difference.
MAKES_LAYERS = "layer_class_to_replicate"
# A static layer with a window counts in a tensor until the window is full, and reads it no longer then; how far it got
# depends on how many tokens were fed together. The plain number beside it goes on.
COUNTED_UNTIL_FULL, COUNTED, FULL_AT = "cumulative_length", "cumulative_length_int", "max_cache_len"


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


def cache_argument(model: Any) -> str:
    """The keyword under which `generate` takes a cache for this model."""
    taken = inspect.signature(type(model).forward).parameters
    return next((name for name in CACHE_NAMES if name in taken), "past_key_values")


def is_cache(thing: Any) -> bool:
    """Whether something is a cache of the library's own classes, and no state that a model made up for itself."""
    from transformers.cache_utils import Cache

    return isinstance(thing, Cache)


def length_of(cache: Any) -> int | None:
    """How many positions a cache holds; None where it cannot tell, as purely recurrent ones and those of own kinds."""
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):
        return None


def has_default_cache(model: Any) -> bool:
    """Whether `generate` makes the cache of this model itself, so that its class can be chosen."""
    for name in ("_supports_default_dynamic_cache", "_supports_default_dynamic_cache_"):
        if hasattr(model, name):
            return bool(getattr(model, name)())
    return True


def static_cache_settings() -> dict[str, Any]:
    """The `GenerationConfig` fields that ask for a static cache without compilation."""
    return {"cache_implementation": "static", "disable_compile": True}


@cache
def lossless_layer(residual: int = 4) -> type:
    """A quantised layer of the installed base class that loses nothing; it keeps `residual` tokens as they are.

    Its second storage holds the same numbers as its first: what is different is only where entries are.
    """
    from transformers.cache_utils import QuantizedLayer

    class LosslessQuantizedLayer(QuantizedLayer):
        """Keeps a copy where another would keep fewer bits."""

        def __init__(self) -> None:
            super().__init__(residual_length=residual)

        def _quantize(self, tensor: torch.Tensor, axis: int = 0) -> torch.Tensor:  # noqa: ARG002 - given by the base
            return tensor.clone()

        def _dequantize(self, q_tensor: torch.Tensor) -> torch.Tensor:
            return q_tensor

    return LosslessQuantizedLayer


@cache
def fp8_layer() -> type | None:
    """The release's layer that keeps eight bits of a number and needs no backend, from 5.24 on."""
    import transformers.cache_utils as module

    found: type | None = getattr(module, "Fp8QuantizedLayer", None)
    return found


def eight_bits(layer: Any) -> dict[str, torch.Tensor]:
    """What a layer of eight bits holds, as numbers; none for layers of other kinds."""
    kind, held = fp8_layer(), {}
    if kind is not None and isinstance(layer, kind):
        for name in ("keys", "values"):
            stored = vars(layer).get(f"_quantized_{name}")
            if stored is not None:
                held[name] = stored[0].float() * stored[1]
    return held


@contextmanager
def quantized_stand_in() -> Iterator[None]:
    """`generate` makes quantised caches without a backend, of layers that lose nothing, while the block runs."""
    import transformers.generation.utils as module
    from transformers.cache_utils import Cache

    def make(backend: str, config: Any, **_: Any) -> Any:  # noqa: ARG001 - as the class takes them
        return Cache(layers=[lossless_layer()() for _ in range(config.num_hidden_layers)])

    own, module.QuantizedCache = module.QuantizedCache, make
    try:
        yield
    finally:
        module.QuantizedCache = own


def quantised_exactly(cache: Any) -> Any:
    """The cache with its plain layers replaced by quantised ones that lose nothing; itself where it has others."""
    from transformers.cache_utils import DynamicLayer

    if getattr(cache, "layers", None) and all(type(layer) is DynamicLayer for layer in cache.layers):
        cache.layers = [lossless_layer()() for _ in cache.layers]
    return cache
