"""The default config of an architecture, taken apart into levels of plain values."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.architectures import catalogue
from conformance.errors import NotBuildable

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# Plain dictionaries in which no integer is a size, or which a config derives from what is set elsewhere.
LEFT_ALONE = ("rope_parameters", "rope_scaling", "id2label", "label2id", "per_layer_config", "task_specific_params")


@dataclass(frozen=True)
class Level:
    """The plain values of a config, or of a config or dictionary inside it; `prefix` is "" or ends with a dot."""

    prefix: str
    values: Mapping[str, object]


def make_default(config_class: type[PreTrainedConfig]) -> PreTrainedConfig:
    """`config_class()`. Raises `NotBuildable` when the class cannot be made without arguments."""
    try:
        return config_class()
    except Exception as error:  # any user class, any validator
        raise NotBuildable(f"{config_class.__name__}() cannot be made without arguments: {one_line(error)}") from error


@cache
def config_class_of(name: str) -> type[PreTrainedConfig]:
    """The config class of an architecture in the installed release."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config_class: type[PreTrainedConfig] = CONFIG_MAPPING[catalogue.get(name).model_type]
    return config_class


@cache
def default_config(name: str) -> PreTrainedConfig:
    """The default config of an architecture, made once per process: read it, never change it."""
    return make_default(config_class_of(name))


def children(config: PreTrainedConfig) -> dict[str, PreTrainedConfig]:
    """The configs directly inside a config, by attribute."""
    from transformers import PreTrainedConfig

    return {name: value for name, value in vars(config).items() if isinstance(value, PreTrainedConfig)}


def plain(config: PreTrainedConfig) -> dict[str, Any]:
    """The values of a config without those of the configs inside it."""
    inner, own = children(config), vars(config)
    # A few configs write a value as another one than they hold (windows halved, layers counted double).
    return {name: own.get(name, value) for name, value in config.to_dict().items() if name not in inner}


def levels(config: PreTrainedConfig, prefix: str = "") -> Iterator[Level]:
    """A config, the dictionaries and the configs inside it, depth first."""
    values = plain(config)
    yield Level(prefix, values)
    for name, value in values.items():
        if isinstance(value, dict) and name not in LEFT_ALONE:
            yield Level(f"{prefix}{name}.", value)
    for name, child in children(config).items():
        yield from levels(child, f"{prefix}{name}.")


def has(config: PreTrainedConfig, attribute: str) -> bool:
    """Whether a config has an attribute, be it one whose value differs from layer to layer and cannot be read."""
    try:
        getattr(config, attribute)
    except AttributeError:
        return False
    except Exception:  # noqa: BLE001 - 5.24 has a type of its own for "read it per layer"
        return True
    return True


def differences(config: PreTrainedConfig) -> dict[str, Any]:
    """What a config inside another has that a fresh one of its class has not: its owner asked for it."""
    fresh, missing = plain(make_default(type(config))), object()
    return {name: copy.copy(value) for name, value in plain(config).items() if fresh.get(name, missing) != value}


def one_line(error: BaseException) -> str:
    """An error as one line of bounded length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
