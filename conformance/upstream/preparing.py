"""What `generate` prepares before its loop begins, caught where it hands that to a `custom_generate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.upstream.caches import cache_name

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Handed:
    """What a decoding loop is handed: the ids, shape (rows, prompt), what was made of the settings, and the rest.

    kwargs: the arguments of the first forward, without the cache.
    cache: an empty one, or the caller's, under `cache_name`; both None where the model makes its own in a forward.
    """

    input_ids: torch.Tensor
    generation_config: Any
    logits_processor: Any
    stopping_criteria: Any
    kwargs: dict[str, Any]
    cache: Any
    cache_name: str | None

    def with_cache(self) -> dict[str, Any]:
        """The arguments of the first forward, the cache among them where there is one."""
        return {**self.kwargs, **({self.cache_name: self.cache} if self.cache_name else {})}


def handed_to_loop(model: Any, arguments: Mapping[str, Any]) -> Handed:
    """What `model.generate(**arguments)` hands to its loop; no forward of the decoder is run.

    Raises whatever `generate` raises while it prepares.
    """
    caught: list[Handed] = []

    def catch(
        _: Any,
        input_ids: torch.Tensor,
        generation_config: Any,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        **kwargs: Any,
    ) -> torch.Tensor:
        name = cache_name(kwargs)
        cache = kwargs.pop(name) if name else None
        caught.append(Handed(input_ids, generation_config, logits_processor, stopping_criteria, kwargs, cache, name))
        return input_ids

    model.generate(**arguments, custom_generate=catch)
    return caught[0]
