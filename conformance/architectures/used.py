"""Which of the free numbers make a difference to an architecture, found by changing one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.architectures.hidden import known
from conformance.architectures.shrink import kind_count, tiny_config, tiny_config_of
from conformance.architectures.sizes import PLAINEST, RANGES, SWITCHES, Sizes

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

PLANS = ((0,), (1,), (0, 1, 0))


@cache
def numbers_used(name: str) -> tuple[str, ...]:
    """The fields of `Sizes` that change anything about this architecture, in the order of `Sizes`."""
    switches = [switch for switch in SWITCHES if switch in known(name).switches]
    used = [number for number in RANGES if any(_matters(name, number, start) for start in _starts(switches))]
    planned = ["layer_plan"] if kind_count(name) > 1 and _differs(name, PLAINEST, layer_plan=PLANS) else []
    return (*used, *planned, *switches)


def _starts(switches: list[str]) -> Iterator[Sizes]:
    """Where to change a number from: some show only beside more heads and experts, or once a switch is on."""
    yield PLAINEST
    yield replace(PLAINEST, heads=4, experts=4)
    for switch in switches:
        yield _with(PLAINEST, switch, True)


def _matters(name: str, number: str, start: Sizes) -> bool:
    allowed = RANGES[number]
    return _differs(name, start, **{number: (allowed.minimum, allowed.maximum)})


def _differs(name: str, start: Sizes, **choices: tuple[Any, ...]) -> bool:
    plain = tiny_config(name, start)
    return any(tiny_config(name, _with(start, field, v)) != plain for field, values in choices.items() for v in values)


def _with(start: Sizes, field: str, value: Any) -> Sizes:
    changed: dict[str, Any] = {field: value}
    return replace(start, **changed)


@cache
def numbers_used_by(config_class: type[PreTrainedConfig]) -> tuple[str, ...]:
    """The fields of `Sizes` that change anything about the tiny config of a class, `window_on` among them."""
    starts = (PLAINEST, replace(PLAINEST, heads=4, experts=4, window_on=True))
    plain = {start: tiny_config_of(config_class, start) for start in starts}

    def matters(field: str, values: tuple[Any, ...]) -> bool:
        changed = ((start, _with(start, field, value)) for start in starts for value in values)
        return any(tiny_config_of(config_class, sizes) != plain[start] for start, sizes in changed)

    used = [number for number, allowed in RANGES.items() if matters(number, (allowed.minimum, allowed.maximum))]
    windowed = tiny_config_of(config_class, _with(PLAINEST, "window_on", True)) != plain[PLAINEST]
    return (*used, "window_on") if windowed else tuple(used)
