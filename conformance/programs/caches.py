"""Caches that `generate` can be given beside those that it makes: quantised, plain, bare; and those allocated early."""

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


def bare(config: Any) -> Any:  # noqa: ARG001 - as the others are made
    """A dynamic cache that is told of no model: it makes layers of full attention as they are needed."""
    from transformers import DynamicCache

    return DynamicCache()


def initialize_early(empty: Any, filled: Any, batch: int, *, whole: bool = False) -> None:
    """Allocate the layers of an empty static cache before its first update, with the shapes of a filled one's.

    whole: by the cache itself where it is made of two; else by the part that holds what the decoder is fed.
    """
    if sizes := sizes_of(filled):
        upstream.allocate(empty if whole else upstream.own_part(empty), batch, *sizes, like=_with_keys(filled)[0].keys)


def sizes_of(filled: Any) -> tuple[list[int], list[int]] | None:
    """The heads of each layer of a filled cache, and their sizes; None where no allocation can be told of them: without
    keys, or with values of another size.
    """
    keys = [getattr(layer, "keys", None) for layer in upstream.layers_of(filled)]
    known = [tensor for tensor in keys if tensor is not None]
    if not known or any(layer.keys.shape != layer.values.shape for layer in _with_keys(filled)):
        return None
    heads, sizes = ([(known[0] if k is None else k).shape[axis] for k in keys] for axis in (1, 3))
    return heads, sizes


def _with_keys(filled: Any) -> list[Any]:
    return [layer for layer in upstream.layers_of(filled) if getattr(layer, "keys", None) is not None]
