"""A tiny config of any architecture, by rules over the names of its attributes.

`tiny_config` gives settings, plain JSON such as {"hidden_size": 32, ...}; `make_config` turns settings into a config
of the installed release.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from conformance.architectures import catalogue, layers
from conformance.architectures.apply import build, knows
from conformance.architectures.defaults import Level, config_class_of, default_config, levels, make_default, one_line
from conformance.architectures.hidden import known, window_change
from conformance.architectures.overrides import Change, Json, Override
from conformance.architectures.roles import SWITCHED_OFF, evaluate, formula_of, special_token
from conformance.architectures.said_elsewhere import refuse
from conformance.architectures.sizes import PLAINEST, SWITCHES, Sizes
from conformance.errors import BadInput, NotBuildable

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

Settings = dict[str, Json]


def tiny_config(name: str, sizes: Sizes = PLAINEST) -> Settings:
    """What to set, by dotted attribute, to make this architecture tiny; nothing that keeps its default is listed.

    Raises `UnknownArchitecture`, and `NotBuildable` when the type has no default config to start from.
    """
    by_hand = known(name)
    default, change = default_config(name), _active(by_hand, sizes)
    settings = _shrunk(default, sizes, change)
    for attribute in _by_hand(name) - set(by_hand.arguments):
        # Older releases lack some of what the overrides set, and have no need of it.
        if attribute in settings and not _knows(name, attribute):
            del settings[attribute]
    if catalogue.get(name).task == "causal":
        # Encoders attend in both directions, and encoder-decoder configs mean both halves, until told otherwise.
        settings |= {"is_decoder": True} if getattr(default, "is_decoder", None) is False else {}
        settings |= {"is_encoder_decoder": False} if default.is_encoder_decoder else {}
    return settings


def tiny_config_of(config_class: type[PreTrainedConfig], sizes: Sizes = PLAINEST) -> Settings:
    """As `tiny_config`, for a config class that the release does not know, by the generic rules alone.

    Raises `NotBuildable` that names the attribute without whose tiny value the class can be made.
    """
    default = make_default(config_class)
    window = window_change(default)
    switches = {} if window is None else {"window_on": window}
    settings = _shrunk(default, sizes, _active(Override(switches=switches), sizes))
    try:
        build(config_class, settings)
    except Exception as error:  # whatever a class of the user raises
        culprit = _culprit(config_class, settings)
        raise NotBuildable(f"{config_class.__name__}: {culprit}: {one_line(error)}") from error
    return settings


def make_config(name: str, settings: Mapping[str, Json], attention: str = "eager") -> PreTrainedConfig:
    """The config of the installed release with these settings, made through its constructor so that it validates.

    Raises `BadInput` for an attribute that the config does not have, one that the case itself says, or a size that is
    not tiny, `NotBuildable` with the release's own reason when it refuses the settings.
    """
    refuse(settings)
    return build(config_class_of(name), settings, attention, known(name).arguments, default_config(name))


def kind_count(name: str, sizes: Sizes = PLAINEST) -> int:
    """How many distinct kinds of layer a type has to choose from (1 when its config lists none)."""
    change = _active(known(name), sizes)
    tables = [found for level in levels(default_config(name)) if (found := _kinds(level, change)) is not None]
    return max((len(found.rows) for found in tables), default=1)


@cache
def _by_hand(name: str) -> frozenset[str]:
    changes = (known(name).always, *known(name).switches.values())
    return frozenset(attribute for c in changes for attribute in (*c.set, *c.formulas, *c.layers))


@cache
def _knows(name: str, attribute: str) -> bool:
    return knows(default_config(name), attribute)


def _active(by_hand: Override, sizes: Sizes) -> Change:
    """The changes that always apply and those of the switches that are on; the later one wins."""
    change = by_hand.always
    for switch in (s for s in SWITCHES if getattr(sizes, s) and s in by_hand.switches):
        more = by_hand.switches[switch]
        change = Change(
            set={**change.set, **more.set},
            formulas={**change.formulas, **more.formulas},
            layers=more.layers or change.layers,
            starts_with=more.starts_with if more.starts_with is not None else change.starts_with,
            ends_with=more.ends_with if more.ends_with is not None else change.ends_with,
            min_layers=max(change.min_layers, more.min_layers),
            repeat_plan=max(change.repeat_plan, more.repeat_plan),
        )
    return change


def _shrunk(config: PreTrainedConfig, sizes: Sizes, change: Change) -> Settings:
    settings: Settings = {}
    for level in levels(config):
        settings |= {level.prefix + attribute: value for attribute, value in _level(level, sizes, change).items()}
    settings.update(change.set)
    return settings


def _level(level: Level, sizes: Sizes, change: Change) -> Settings:
    settings: Settings = {}
    table = _kinds(level, change)
    depth = max(sizes.layers, change.min_layers)
    if table is not None:
        plan = _ordered(table.plan(sizes), table, change)
        depth = len(plan)
        settings |= {a: _resized(a, v, sizes, depth) for a, v in table.settings(plan).items()}
    settings |= {a: v for a, v in _numbers(level, sizes, change, depth).items() if a not in settings}
    return settings


def _resized(attribute: str, per_layer: list[Json], sizes: Sizes, depth: int) -> list[Json]:
    """A per-layer list; where it holds numbers that a rule knows, the tiny ones."""
    formula = formula_of(attribute)
    if not formula or not all(type(value) is int and value > 0 for value in per_layer):
        return per_layer
    return [evaluate(formula, sizes, depth)] * len(per_layer)


def _ordered(plan: tuple[int, ...], table: layers.Kinds, change: Change) -> tuple[int, ...]:
    """The plan under the constraints of the type."""
    if change.repeat_plan > 1:
        plan = plan[-2:]  # so that the repeated one is not deeper than others
    plan += plan[-1:] * (change.min_layers - len(plan))
    if change.starts_with is not None:
        plan = (change.starts_with, *plan[1:])
    if change.ends_with is not None:
        plan = (*plan[:-1], change.ends_with)
    return table.with_attention(plan) * change.repeat_plan


def _kinds(level: Level, change: Change) -> layers.Kinds | None:
    given = {a.removeprefix(level.prefix): v for a, v in change.layers.items() if _belongs(a, level)}
    return layers.table(given, level.values) if given else layers.kinds(level.values)


def _belongs(attribute: str, level: Level) -> bool:
    return attribute.startswith(level.prefix) and "." not in attribute.removeprefix(level.prefix)


def _numbers(level: Level, sizes: Sizes, change: Change, depth: int) -> Settings:
    """The integers of one level: those that an override derives, the special tokens, and those that a rule knows."""
    given = {a.removeprefix(level.prefix): f for a, f in change.formulas.items() if _belongs(a, level)}
    numbers: Settings = {a: evaluate(f, sizes, depth) for a, f in given.items() if f}
    for attribute, default in level.values.items():
        if attribute in given:
            continue
        if attribute in SWITCHED_OFF and default is True:
            numbers[attribute] = False
        is_special, value = special_token(attribute, default)
        if is_special:
            numbers[attribute] = value
        elif isinstance(default, int) and not isinstance(default, bool) and default > 0:
            formula = _formula(attribute, level.values)
            numbers |= {attribute: evaluate(formula, sizes, depth)} if formula else {}
    return numbers


def _formula(attribute: str, values: Mapping[str, object]) -> str:
    """The rule for a name; three names mean something else beside latent attention or a state space."""
    if attribute == "num_key_value_heads" and "kv_lora_rank" in values:
        return "heads"
    if attribute == "head_dim" and values.get("qk_rope_head_dim") == values["head_dim"]:
        return "rope_dim"
    if "expand" in values and attribute in ("intermediate_size", "head_dim"):
        return "2*hidden" if attribute == "intermediate_size" else "2*head_dim"
    return formula_of(attribute)


def _culprit(config_class: type[PreTrainedConfig], settings: Settings) -> str:
    """The first attribute at whose default size the class would have accepted all the others."""
    for attribute in settings:
        try:
            build(config_class, {a: v for a, v in settings.items() if a != attribute})
        except NotBuildable:
            continue
        except BadInput:
            pass  # accepted by the class, only no longer tiny
        return f"stopped by {attribute} = {settings[attribute]!r}"
    return f"no single attribute of {sorted(settings)} is to blame"
