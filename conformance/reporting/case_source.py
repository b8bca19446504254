"""What a case's config, generation config and tensors are made of, as a script writes it."""

from __future__ import annotations

import copy
from typing import Any

from conformance.architectures.apply import build
from conformance.architectures.defaults import config_class_of, default_config
from conformance.architectures.overrides import override
from conformance.build import Scenario
from conformance.case import Case, plain
from conformance.reporting.source import literal

# What `generate` takes for a field that nobody set, in every 5.x release.
DEFAULTS = {"num_beams": 1, "use_cache": True, "temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.0}


def constructor_arguments(case: Case) -> dict[str, Any]:
    """What the config class of the case's architecture is called with to make the case's config.

    Raises NotBuildable or BadInput when the installed release refuses them.
    """
    name, caught = case.model.architecture, {}
    config_class = config_class_of(name)

    def caught_by(**arguments: Any) -> Any:
        caught.update(copy.deepcopy(arguments))
        return config_class(**arguments)

    build(caught_by, plain(case.model.config), case.model.attention, override(name).arguments, default_config(name))  # type: ignore[arg-type]
    return caught


def set_fields(generation_config: Any) -> dict[str, Any]:
    """The fields of a `GenerationConfig` that are not what `generate` takes anyway."""
    fields = {k: v for k, v in vars(generation_config).items() if not k.startswith("_") and k != "transformers_version"}
    return {k: v for k, v in fields.items() if v is not None and v is not False and v != DEFAULTS.get(k)}


def tensors(scenario: Scenario, rows: list[int] | None) -> dict[str, str]:
    """Name → source of each tensor of the inputs of these rows; images are drawn as weights are."""
    chosen = list(range(len(scenario.rows)) if rows is None else rows)
    drawn = scenario.media.sources(chosen, scenario.case.model.dtype) if scenario.media else {}
    inputs = scenario.inputs(rows)
    return written(inputs) | {name: source for name, source in drawn.items() if name in inputs}


def written(inputs: dict[str, Any]) -> dict[str, str]:
    """Name → source of each of these tensors, value by value."""
    return {name: f"torch.tensor({literal(tensor.tolist())})" for name, tensor in inputs.items()}
