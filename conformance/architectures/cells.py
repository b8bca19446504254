"""The units of coverage: architecture × cache kind, and which choices of the free numbers lead to each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from conformance.architectures.cache_kinds import cache_kinds
from conformance.architectures.hidden import known
from conformance.architectures.shrink import kind_count, make_config, tiny_config
from conformance.architectures.sizes import PLAINEST, SWITCHES, Sizes
from conformance.errors import BadInput, NotBuildable

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SHARED = "shared"  # beside the kinds of `cache_kinds`: layers that use the cache of earlier ones
ENOUGH = 20  # cases of a cell, from which on a run leans towards others


def kinds(config: PreTrainedConfig) -> tuple[str, ...]:
    """The kinds of layer in the cache that `generate` makes for this config, `shared` among them, sorted."""
    decoder = config.get_text_config(decoder=True)
    shares = int(getattr(decoder, "num_kv_shared_layers", 0) or 0) > 0
    return tuple(sorted({*cache_kinds(config), *((SHARED,) if shares else ())}))


@cache
def reachable(name: str) -> dict[str, tuple[Sizes, ...]]:
    """Cache kind → the plainest choices of plan and switches that lead to it; empty where nothing can be made.

    Plans are the default one and each kind of layer by itself; every other plan mixes these.
    """
    found: dict[str, list[Sizes]] = {}
    for sizes in _choices(name):
        try:
            config = make_config(name, tiny_config(name, sizes))
        except (NotBuildable, BadInput):
            continue
        for kind in kinds(config):
            found.setdefault(kind, []).append(sizes)
    return {kind: tuple(choices) for kind, choices in sorted(found.items())}


@cache
def decoder_only(name: str) -> bool:
    """Whether the type has no encoder that reads the prompt; where no config can be made, as if it had none."""
    try:
        return not make_config(name, tiny_config(name)).is_encoder_decoder
    except (NotBuildable, BadInput):
        return True


def _choices(name: str) -> Iterator[Sizes]:
    try:
        switches = [switch for switch in SWITCHES if switch in known(name).switches]
        for states in product((False, True), repeat=len(switches)):
            chosen = replace(PLAINEST, **dict(zip(switches, states, strict=True)))  # type: ignore[arg-type]
            yield chosen
            count = kind_count(name, chosen)
            if count > 1:
                yield from (replace(chosen, layer_plan=(index,)) for index in range(count))
    except NotBuildable:
        return
