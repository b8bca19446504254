"""How rotary models stretch their positions: the kinds of scaling that few default configs ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from conformance.architectures.capabilities import gives_logits
from conformance.architectures.defaults import Level, default_config, levels
from conformance.architectures.options import ELSEWHERE, FEW_POSITIONS, Option
from conformance.architectures.overrides import Json
from conformance.architectures.shrink import make_config, tiny_config
from conformance.errors import NotBuildable

FIXED = ("linear", "llama3", "yarn")  # frequencies that are made once, with the model
BY_LENGTH = ("dynamic", "longrope")  # that follow the longest position of a forward: cached keys keep their older ones
FACTOR = 4
STRETCHED = FACTOR * FEW_POSITIONS
LARGEST_BASE = 1e7  # that a case may hold
SCALINGS: Mapping[str, Mapping[str, Json]] = {
    "linear": {},
    "llama3": {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": FEW_POSITIONS},
    "yarn": {"original_max_position_embeddings": FEW_POSITIONS},
    "dynamic": {},
    "longrope": {"original_max_position_embeddings": FEW_POSITIONS},
}
ROPE, POSITIONS = "rope_parameters", ("max_position_embeddings", "original_max_position_embeddings")


@cache
def ropes(name: str) -> tuple[str, ...]:
    """The kinds of scaling with which a tiny model of this type runs beyond the positions that it has unstretched."""
    try:
        settings = tiny_config(name)
        possible = {kind: stretched(name, kind, settings) for kind in SCALINGS}
    except NotBuildable:
        return ()
    return tuple(k for k, o in possible.items() if o and gives_logits(name, {**settings, **o}, STRETCHED + 1))


def stretched(name: str, kind: str, settings: Mapping[str, Json]) -> Option:
    """What to set, over the settings of a tiny config, for a scaling of this kind; nothing where there is no place.

    A type whose default config stretches its positions in a way of its own keeps that.
    """
    found: dict[str, Json] = {}
    for level in _rotary(name):
        rotated = _rotated(name, settings, level.prefix) if kind == "longrope" else 0
        default: Any = level.values[ROPE]
        if rope := _scaled(default, kind, rotated):
            found[level.prefix + ROPE] = rope
            lengths = (FEW_POSITIONS if kind == "dynamic" else STRETCHED, FEW_POSITIONS)
            found |= {level.prefix + a: n for a, n in zip(POSITIONS, lengths, strict=True) if level.values.get(a)}
    return found


def rope_of(settings: Mapping[str, Any]) -> str:
    """The kind of scaling that these settings ask for; "" where they ask for none."""
    for path, rope in settings.items():
        if path.rsplit(".", 1)[-1] == ROPE and isinstance(rope, Mapping):
            told = {str(part.get("rope_type")) for part in (rope, *rope.values()) if isinstance(part, Mapping)}
            return min(told & SCALINGS.keys(), default="")
    return ""


def unstretched(name: str, settings: Mapping[str, Json]) -> dict[str, Json]:
    """The same settings without a scaling, and with the positions of a tiny config."""
    paths = {level.prefix + attribute for level in _rotary(name) for attribute in (ROPE, *POSITIONS)}
    plainest = tiny_config(name)
    kept = {path: value for path, value in settings.items() if path not in paths}
    return kept | {path: plainest[path] for path in paths if path in plainest}


def _rotary(name: str) -> Iterator[Level]:
    """The levels of a default config at which a decoder's frequencies are told."""
    for level in levels(default_config(name)):
        if isinstance(level.values.get(ROPE), dict) and not ELSEWHERE.match(level.prefix):
            yield level


def _scaled(rope: Mapping[str, Any], kind: str, rotated: int) -> dict[str, Json]:
    """A default's parameters with a scaling; of those that differ by kind of layer, each that has none so far."""
    alike = "rope_type" in rope
    parts = {"": rope} if alike else {layers: part for layers, part in rope.items() if isinstance(part, dict)}
    unscaled = [layers for layers, part in parts.items() if part.get("rope_type") == "default"]
    numbers = [value for part in parts.values() for value in part.values() if type(value) in (int, float)]
    unsaid = kind == "longrope" and not (alike and rotated)  # heads of layers of other kinds may differ in size
    if unsaid or not unscaled or max(numbers, default=0) > LARGEST_BASE:
        return {}
    factors = {"short_factor": [1.0] * rotated, "long_factor": [1.0 + n for n in range(rotated)]} if rotated else {}
    asked = {"rope_type": kind, "factor": float(FACTOR), **SCALINGS[kind], **factors}
    scaled: dict[str, Any] = {
        layers: {**_floats(part), **(asked if layers in unscaled else {})} for layers, part in parts.items()
    }
    return dict(scaled[""]) if alike else {**rope, **scaled}


def _floats(part: Mapping[str, Any]) -> dict[str, Json]:
    """The same values, bases that are whole numbers as others are: a case bounds what counts something."""
    return {name: float(value) if type(value) is int else value for name, value in part.items()}


def _rotated(name: str, settings: Mapping[str, Json], prefix: str) -> int:
    """How many frequencies a head has; 0 where the config cannot be made, or does not say so in the usual words."""
    try:
        config: Any = make_config(name, settings)
        for part in filter(None, prefix.split(".")):
            config = getattr(config, part)
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    except Exception:  # noqa: BLE001 - refused, not there, or a type of 5.24's own for "read it per layer"
        return 0
    return int(size * (config.rope_parameters.get("partial_rotary_factor") or 1.0)) // 2
