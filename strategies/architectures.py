"""Strategies for types and their tiny models: the free numbers of a type, and the settings that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.architectures.capabilities import capabilities
from conformance.architectures.cells import reachable
from conformance.architectures.overrides import Json
from conformance.architectures.shrink import kind_count, tiny_config, tiny_config_of
from conformance.architectures.sizes import MAX_LAYERS, PLAINEST, RANGES, SWITCHES, Range, Sizes
from conformance.architectures.used import numbers_used, numbers_used_by
from conformance.errors import BadInput, unknown
from conformance.globs import select_architectures

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

Bounds = tuple[int, int]
Choice = int | Bounds | SearchStrategy[int]

# A selector that drops keys has exact ties, which look like differences: one draw in this many has one.
SELECTING = 5


def architectures(*, names: str | None = None) -> SearchStrategy[str]:
    """Names of architectures that the installed release can make.

    `names` is comma-separated globs over all it has; left out, the default selection. Types that turn out not to be
    buildable are passed over. Raises BadInput for a glob that matches none.
    """
    chosen = select_architectures(names)
    return st.sampled_from(chosen).filter(lambda name: capabilities(name).buildable)


@st.composite
def cells(draw: st.DrawFn, *, names: str | None = None) -> tuple[str, str]:
    """(architecture, cache kind): the units of coverage. Half of the draws take each kind as often as any other.

    `names` as in `architectures`. The kinds of all of them are found out at the first draw, which takes a moment.
    """
    table = _architectures_of(select_architectures(names))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(sorted(table)))
        return draw(st.sampled_from(table[kind])), kind
    name = draw(architectures(names=names))
    return name, draw(st.sampled_from(sorted(reachable(name))))


@cache
def _architectures_of(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Cache kind → the buildable architectures that reach it."""
    found: dict[str, list[str]] = {}
    for name in names:
        for kind in reachable(name) if capabilities(name).buildable else ():
            found.setdefault(kind, []).append(name)
    return found


def sizes(
    name: str,
    *,
    layer_plans: Sequence[int] | SearchStrategy[tuple[int, ...]] | None = None,
    switches: bool = True,
    **numbers: Choice,
) -> SearchStrategy[Sizes]:
    """`Sizes` for an architecture: the numbers it uses vary, the others stay at their default.

    Each of `numbers` is a value, a (minimum, maximum) pair or a strategy, by the name of a field of `Sizes`;
    `layer_plans` is one plan or a strategy of plans; without `switches` nothing is on that a default config hides.
    Shrinks towards the plainest model. Raises `BadInput` for a number that the architecture does not use, for a value
    outside its range and for bounds that hold no value.
    """
    used = numbers_used(name)
    for number in numbers:
        if number not in RANGES:
            raise unknown("number", number, RANGES)
        if number not in used:
            raise BadInput(f"{name} has no use for {number}; it uses {', '.join(used)}")
    fields: dict[str, SearchStrategy[object]] = {
        number: _choice(number, numbers.get(number)) for number in used if number in RANGES
    }
    if layer_plans is not None or "layer_plan" in used:
        fields["layer_plan"] = _plans(name, layer_plans)
    if switches:
        fields |= {switch: st.booleans() for switch in SWITCHES if switch in used}
    return st.builds(Sizes, **fields)


def sizes_with(name: str, kind: str, **numbers: Choice) -> SearchStrategy[Sizes]:
    """`Sizes` that give an architecture a cache with layers of one kind; the other numbers vary as in `sizes`.

    Raises `BadInput` for a kind that the architecture does not reach.
    """
    choices = reachable(name).get(kind)
    if choices is None:
        raise unknown(f"cache kind of {name}", kind, reachable(name))
    fixed = st.sampled_from(choices)
    return st.builds(_moved, sizes(name, layer_plans=None, switches=False, **numbers), fixed)


def _moved(drawn: Sizes, chosen: Sizes) -> Sizes:
    switches = {switch: getattr(chosen, switch) for switch in SWITCHES}
    # The depth too: which kinds a default plan holds can depend on it.
    return replace(drawn, layers=chosen.layers, layer_plan=chosen.layer_plan, **switches)


def configs(
    name: str | type[PreTrainedConfig],
    *,
    layer_plans: Sequence[int] | SearchStrategy[tuple[int, ...]] | None = None,
    switches: bool = True,
    **numbers: Choice,
) -> SearchStrategy[dict[str, Json]]:
    """Settings for `make_config`: dotted attribute → plain value. Takes what `sizes` takes.

    Also for a config class of one's own, by the generic rules alone: the settings then are for its constructor, by
    `conformance.architectures.apply.build`, and a number that the class has no use for is refused like any other.
    Raises `NotBuildable`, naming the attribute, where no tiny config of the class can be made.
    """
    if isinstance(name, type):
        return _configs_of(name, layer_plans, numbers)
    drawn = sizes(name, layer_plans=layer_plans, switches=switches, **numbers)
    return drawn.map(lambda chosen: tiny_config(name, chosen))


def _configs_of(
    config_class: type[PreTrainedConfig],
    layer_plans: Sequence[int] | SearchStrategy[tuple[int, ...]] | None,
    numbers: Mapping[str, Choice],
) -> SearchStrategy[dict[str, Json]]:
    tiny_config_of(config_class)  # what stops the class is said at once, and not by a draw
    if layer_plans is not None:
        raise BadInput(f"layer plans are for the types of the release, not for {config_class.__name__}")
    used = numbers_used_by(config_class)  # type: ignore[arg-type]
    for number in numbers:
        if number not in RANGES:
            raise unknown("number", number, RANGES)
        if number not in used:
            raise BadInput(f"{config_class.__name__} has no use for {number}; it uses {', '.join(used)}")
    fields = {number: _choice(number, numbers.get(number)) for number in used if number in RANGES}
    fields |= {switch: st.booleans() for switch in SWITCHES if switch in used}
    return st.builds(Sizes, **fields).map(lambda chosen: tiny_config_of(config_class, chosen))


def _choice(number: str, choice: Choice | None) -> SearchStrategy[int]:
    allowed = RANGES[number]
    if isinstance(choice, SearchStrategy):
        return choice
    if isinstance(choice, int):
        if choice not in allowed:
            raise BadInput(f"{number} is {choice}, must be {allowed}")
        return st.just(choice)
    values = _within(number, allowed, choice)
    if number == "index_topk" and allowed.maximum in values:
        return st.one_of(*(st.just(allowed.maximum) for _ in range(SELECTING - 1)), st.sampled_from(values))
    return st.sampled_from(values)


def _within(number: str, allowed: Range, bounds: Bounds | None) -> list[int]:
    """The values inside the bounds, the default first and the rest upwards, which is the order of shrinking."""
    low, high = bounds or (allowed.minimum, allowed.maximum)
    values = [value for value in allowed.values() if low <= value <= high]
    if not values:
        raise BadInput(f"no value for {number} between {low} and {high}; it can be {allowed}")
    default = getattr(PLAINEST, number)
    return sorted(values, key=lambda value: (value != default, value))


def _plans(name: str, plans: Sequence[int] | SearchStrategy[tuple[int, ...]] | None) -> SearchStrategy[tuple[int, ...]]:
    if isinstance(plans, SearchStrategy):
        return plans
    count = kind_count(name)
    if plans is None:
        kinds = st.lists(st.integers(0, count - 1), min_size=1, max_size=MAX_LAYERS)
        return st.just(()) | kinds.map(tuple)
    if not plans or len(plans) > MAX_LAYERS or not all(0 <= kind < count for kind in plans):
        raise BadInput(f"layer plan {tuple(plans)} for {name}: 1 to {MAX_LAYERS} indices below {count}")
    return st.just(tuple(plans))
