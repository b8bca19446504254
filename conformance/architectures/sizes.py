"""The free numbers of a tiny model. Everything else about its size follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import gcd
from typing import Any

from conformance.errors import BadInput

MAX_LAYERS = 4


@dataclass(frozen=True)
class Range:
    """The values that a number can take: `minimum`, `minimum + step`, ... up to `maximum`."""

    minimum: int
    maximum: int
    step: int = 1

    def __contains__(self, value: object) -> bool:
        inside = isinstance(value, int) and self.minimum <= value <= self.maximum
        return inside and (value - self.minimum) % self.step == 0  # type: ignore[operator]

    def values(self) -> range:
        """Every value, upwards."""
        return range(self.minimum, self.maximum + 1, self.step)

    def __str__(self) -> str:
        steps = f" in steps of {self.step}" if self.step > 1 else ""
        return f"{self.minimum} to {self.maximum}{steps}"


def _number(default: int, minimum: int, maximum: int, step: int = 1) -> Any:
    return field(default=default, metadata={"range": Range(minimum, maximum, step)})


@dataclass(frozen=True)
class Sizes:
    """One choice of the free numbers; the default of each is the plainest model, from which draws move away.

    `layer_plan` holds indices into the distinct kinds of layer that a type has, in the order in which its default
    config first shows them. Empty: every kind once, repeated up to `layers`. An index beyond the last kind wraps.
    The three switches ask for what a default config hides; a type without the feature ignores them.

    Raises `BadInput` for a number outside its range.
    """

    layers: int = _number(2, 1, MAX_LAYERS)
    heads: int = _number(2, 1, 4)
    kv_groups: int = _number(1, 1, 4)  # query heads per key/value head, as far as it divides the heads
    head_dim: int = _number(8, 8, 16, 8)  # eights, so that a quarter of it is still even: partial rotary positions
    intermediate: int = _number(32, 16, 64, 16)
    vocabulary: int = _number(64, 40, 128, 8)
    experts: int = _number(2, 2, 4)
    experts_per_token: int = _number(2, 1, 2)  # with two experts nothing is routed, so no routing tie either
    window: int = _number(4, 2, 8)  # tokens
    chunk: int = _number(4, 2, 8)  # tokens: chunked attention, and the scans of state-space layers
    index_topk: int = _number(64, 2, 64)  # keys kept by a selector: 64 keeps every key of a short sequence
    rank: int = _number(8, 4, 16, 4)  # of low-rank projections
    conv_kernel: int = _number(4, 2, 4)  # tokens
    state: int = _number(8, 4, 16, 4)  # of a recurrent layer
    positions: int = _number(128, 64, 128, 64)  # tokens
    layer_plan: tuple[int, ...] = ()
    window_on: bool = False
    shared_layers: bool = False
    sparse_layers: bool = False

    def __post_init__(self) -> None:
        for name, allowed in RANGES.items():
            if getattr(self, name) not in allowed:
                raise BadInput(f"sizes: {name} is {getattr(self, name)!r}, must be {allowed}")
        if len(self.layer_plan) > MAX_LAYERS or any(index < 0 for index in self.layer_plan):
            raise BadInput(f"sizes: layer_plan is {self.layer_plan!r}, must be at most {MAX_LAYERS} indices from 0")

    @property
    def hidden(self) -> int:
        """Of the residual stream."""
        return self.heads * self.head_dim

    @property
    def kv_heads(self) -> int:
        """Key/value heads; always a divisor of the heads."""
        return self.heads // gcd(self.heads, self.kv_groups)

    @property
    def top_k(self) -> int:
        """Experts per token, never more than there are."""
        return min(self.experts, self.experts_per_token)

    @property
    def rope_dim(self) -> int:
        """Of the part of a latent-attention head that carries positions."""
        return self.head_dim // 2

    @property
    def split_head_dim(self) -> int:
        """Of a latent-attention head: a part without positions, as long as a head, and a part with them."""
        return self.head_dim + self.rope_dim


RANGES: dict[str, Range] = {f.name: f.metadata["range"] for f in fields(Sizes) if "range" in f.metadata}
SWITCHES: tuple[str, ...] = tuple(f.name for f in fields(Sizes) if f.type == "bool")
PLAINEST = Sizes()
