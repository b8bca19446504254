"""Caches that `generate` can be given beside those that it makes: quantised, plain for an encoder-decoder, early."""

from __future__ import annotations

from typing import Any

from conformance import upstream


def quantized(config: Any) -> Any:
    """A quantised cache that loses nothing, for a config whose layers are all of full attention."""
    from transformers.cache_utils import Cache

    count = config.get_text_config(decoder=True).num_hidden_layers
    return Cache(layers=[upstream.lossless_layer()() for _ in range(count)])


def fp8(config: Any) -> Any:
    """A cache of the release's own layers of eight bits, which need no backend, for a config of full attention."""
    from transformers.cache_utils import Cache

    layer, count = upstream.fp8_layer(), config.get_text_config(decoder=True).num_hidden_layers
    assert layer is not None  # guarded
    return Cache(layers=[layer() for _ in range(count)])


def plain(config: Any) -> Any:
    """A dynamic cache as a user makes it who does not know of encoder-decoder caches."""
    from transformers import DynamicCache

    return DynamicCache(config=config.get_text_config(decoder=True))


def initialize_early(empty: Any, filled: Any, batch: int) -> None:
    """Allocate the layers of an empty static cache before its first update, with the shapes of a filled one's."""
    shapes = [getattr(layer, "keys", None) for layer in upstream.layers_of(filled)]
    known = [shape for shape in shapes if shape is not None]
    if not known or any(layer.keys.shape != layer.values.shape for layer in _with_keys(filled)):
        return  # keys and values of their own sizes cannot be told in this call
    heads = [known[0].shape[1] if shape is None else shape.shape[1] for shape in shapes]
    sizes = [known[0].shape[3] if shape is None else shape.shape[3] for shape in shapes]
    upstream.allocate(empty, batch, heads, sizes, like=known[0])


def _with_keys(filled: Any) -> list[Any]:
    return [layer for layer in upstream.layers_of(filled) if getattr(layer, "keys", None) is not None]
