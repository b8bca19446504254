"""Settings, a flat mapping from dotted attribute to plain value, put into a config of the installed release."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from conformance.architectures.defaults import children, differences, has, make_default, one_line
from conformance.architectures.overrides import Json
from conformance.architectures.roles import formula_of
from conformance.errors import BadInput, CaseRefused, NotBuildable

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# What is obviously no tiny model, by what the attribute counts. Lengths in tokens cost nothing unless set.
LAYERS, VOCABULARY, SIZE = 16, 4096, 512
FREE = ("", "positions", "window", "2*window", "chunk", "index_topk")


def build(
    config_class: type[PreTrainedConfig],
    settings: Mapping[str, Json],
    attention: str = "eager",
    arguments: Collection[str] = (),
    default: PreTrainedConfig | None = None,
) -> PreTrainedConfig:
    """A `config_class` with these settings. Attributes in `arguments` are known to its constructor only.

    Raises `BadInput` for an unknown attribute or a model that is not tiny, `NotBuildable` when the class refuses.
    """
    start = default or make_default(config_class)
    _refuse_sizes(start, settings)
    kwargs = _nested(start, settings, arguments, "")
    try:
        config = config_class(**kwargs)
        config._attn_implementation = attention
    except Exception as error:  # validators raise types of their own
        raise NotBuildable(f"{config_class.__name__} refuses these settings: {one_line(error)}") from error
    _refuse_large(config)
    return config


def knows(config: PreTrainedConfig, attribute: str, arguments: Collection[str] = ()) -> bool:
    """Whether settings for this config may hold a dotted attribute."""
    try:
        _nested(config, {attribute: None}, arguments, "")
    except BadInput:
        return False
    return True


def _nested(
    config: PreTrainedConfig, settings: Mapping[str, Json], arguments: Collection[str], path: str
) -> dict[str, Any]:
    """Constructor arguments for the class of `config`, with a dictionary for every config inside it."""
    inner = children(config)
    kwargs: dict[str, Any] = {}
    groups: dict[str, dict[str, Json]] = {}
    for attribute, value in settings.items():
        head, _, rest = attribute.partition(".")
        if not has(config, head) and path + head not in arguments:
            raise BadInput(f"{type(config).__name__} of the installed release has no attribute {path + head!r}")
        if rest:
            groups.setdefault(head, {})[rest] = value
        else:
            kwargs[head] = copy.deepcopy(value)  # configs keep and change the lists they are given
    for head, group in groups.items():
        if head in inner:
            kwargs[head] = _inside(inner[head], group, arguments, f"{path}{head}.")
        else:
            kwargs[head] = _merged(getattr(config, head), group, path + head)
    return kwargs


def _inside(
    config: PreTrainedConfig, settings: Mapping[str, Json], arguments: Collection[str], path: str
) -> dict[str, Any]:
    """As `_nested`, with what the owner of `config` had asked for: a dictionary given replaces it all."""
    kept = differences(config)
    grown = {name: _inside(child, {}, arguments, f"{path}{name}.") for name, child in children(config).items()}
    asked = _nested(config, settings, arguments, path)
    return {**kept, **grown, **asked, "model_type": config.model_type}


def _merged(default: object, group: Mapping[str, Json], path: str) -> dict[str, Any]:
    """A plain dictionary with some of its values replaced; it may not gain a key."""
    if not isinstance(default, dict):
        raise BadInput(f"{path!r} holds no further attributes in the installed release")
    merged = copy.deepcopy(default)
    for key, value in group.items():
        *way, last = key.split(".")
        inner: Any = merged
        for step in way:
            inner = inner.get(step) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last not in inner:
            raise BadInput(f"the installed release has no attribute {path + '.' + key!r}")
        inner[last] = copy.deepcopy(value)
    return merged


def _refuse_sizes(default: PreTrainedConfig, settings: Mapping[str, Json]) -> None:
    """Raise CaseRefused for a size below one, unless that is the default (it switches something off), and for a chunk
    over which the memory of a scan would be large.
    """
    for attribute, value in settings.items():
        formula = formula_of(attribute.rsplit(".", 1)[-1])
        sizes = [size for size in (value if isinstance(value, list) else [value]) if type(size) is int]
        if not formula or not sizes:
            continue
        least = 0 if formula == "1" else 1
        if min(sizes) < least and value != _held(default, attribute):
            raise CaseRefused(f"{attribute} is {value}, must be at least {least}")
        if formula == "chunk" and max(sizes) > SIZE:
            raise CaseRefused(f"not a tiny model: {attribute} is {value}, at most {SIZE} is accepted")


def _held(config: PreTrainedConfig, attribute: str) -> object:
    """What a config holds under a dotted attribute; None where it has no such thing."""
    found: object = config
    for part in attribute.split("."):
        held = found if isinstance(found, dict) else getattr(found, "__dict__", {})
        found = held.get(part)
    return found


def _refuse_large(config: PreTrainedConfig, prefix: str = "") -> None:
    # The attributes as they are held: writing a config out takes longer than making it.
    for attribute, value in vars(config).items():
        formula = formula_of(attribute)
        if formula in FREE or not isinstance(value, int):
            continue
        limit = {"layers": LAYERS, "vocabulary": VOCABULARY}.get(formula, SIZE)
        if value > limit:
            raise CaseRefused(f"not a tiny model: {prefix}{attribute} is {value}, at most {limit} is accepted")
    for name, child in children(config).items():
        _refuse_large(child, f"{prefix}{name}.")
