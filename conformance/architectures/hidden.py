"""What a default config hides and a plain rule can switch on: sliding windows that are there and off."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from conformance.architectures.defaults import Level, default_config, levels
from conformance.architectures.overrides import Change, Override, override

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

FULL, SLIDING = "full_attention", "sliding_attention"


@cache
def known(name: str) -> Override:
    """What is known by hand about an architecture, with the switches that the rules here find."""
    by_hand = override(name)
    found = window_change(default_config(name))
    if found is None or "window_on" in by_hand.switches or "no_window" in by_hand.facts:
        return by_hand
    return replace(by_hand, switches={**by_hand.switches, "window_on": found})


def window_change(config: PreTrainedConfig) -> Change | None:
    """How to switch on the windows of a config: None where it has none, or has them on already."""
    for level in levels(config):
        if "sliding_window" in level.values and not level.prefix.startswith(("vision", "audio", "encoder")):
            found = _at(level)
            if found is not None:
                return found
    return None


def _at(level: Level) -> Change | None:
    """Windows in half of the layers where a list says which layers attend how, in all of them where none does."""
    listed = level.values.get("layer_types")
    if listed is not None and (not isinstance(listed, list) or set(listed) != {FULL}):
        return None
    if level.values["sliding_window"] and listed is None:
        return None
    return Change(
        set={level.prefix + "use_sliding_window": True} if "use_sliding_window" in level.values else {},
        formulas={level.prefix + "sliding_window": "window"},
        layers={} if listed is None else {level.prefix + "layer_types": [SLIDING, FULL]},
    )
