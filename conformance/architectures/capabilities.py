"""What a type can do in the installed release, found out by trying once per process."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from conformance import upstream
from conformance.architectures import catalogue
from conformance.architectures.defaults import one_line
from conformance.architectures.overrides import Json, override
from conformance.architectures.shrink import make_config, tiny_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ATTENTION = ("eager", "sdpa")


@dataclass(frozen=True)
class Capabilities:
    """What holds for a type. `reason` says why it is not buildable; the other fields then mean nothing."""

    name: str
    buildable: bool
    reason: str = ""
    attention: tuple[str, ...] = ()  # the kernels that a model can be made with
    float64: bool = False  # the forward runs in double precision
    static_cache: bool = False  # the class says that it works with a static cache
    accepts_position_ids: bool = False
    encoder_decoder: bool = False
    own_generate: bool = False  # the class replaces `generate`
    default_cache: bool = False  # `generate` makes its cache, so that the class of it can be chosen


def capabilities(name: str, settings: Mapping[str, Json] | None = None) -> Capabilities:
    """The capabilities of a type; with settings, not buildable when the release refuses those.

    Never raises for a type or for settings that the release cannot build; raises `UnknownArchitecture` for a name.
    """
    catalogue.get(name)
    found = _of_type(name)
    if settings is None or not found.buildable:
        return found
    try:
        make_config(name, settings)
    except ValueError as error:
        return Capabilities(name, buildable=False, reason=str(error))
    return found


def build_model(name: str, settings: Mapping[str, Json], attention: str = "eager") -> PreTrainedModel:
    """A model of this type with the release's own random weights, in evaluation mode and float32."""
    auto = catalogue.auto_class(catalogue.get(name).task)
    config = make_config(name, settings, attention)
    model: PreTrainedModel = auto.from_config(config, attn_implementation=attention).eval()
    return model


def facts(name: str) -> Mapping[str, Json]:
    """What was measured about running a type and cannot be found out by trying once: name of the fact → reason.

    `stepwise_oracle`: see `stepwise_reason`. `selects`: the attribute that limits how many keys are kept. `noisy`:
    equal computations differ by more than the general bound. `cache_kinds`: kinds to replace. `no_position_ids`:
    explicit positions do not work although the forward has a parameter for them. `no_window`: a window in its config
    has no effect. `whole_prompt`: why a prompt in parts is another one. `insensitive`: planted fault (or `kind: fault`)
    → why the next logits need not show it. `reads`: the attribute that limits how many of the entries in its cache the
    next token reads.
    """
    return override(name).facts


def stepwise_reason(name: str, settings: Mapping[str, Json], length: int) -> str:
    """Why one forward over `length` tokens is not what step-by-step recomputation gives; "" where it is."""
    known = facts(name)
    if "stepwise_oracle" in known:
        return str(known["stepwise_oracle"])
    selects = known.get("selects")
    if isinstance(selects, dict):
        kept = settings.get(str(selects["attribute"]))
        if isinstance(kept, int) and kept < length:
            return str(selects["reason"])
    return ""


@cache
def _of_type(name: str) -> Capabilities:
    try:
        settings = tiny_config(name)
        model = build_model(name, settings)
        _forward(model)
    except Exception as error:  # noqa: BLE001 - missing libraries, validators, faults of the model: all of them are the answer
        return Capabilities(name, buildable=False, reason=one_line(error))
    return Capabilities(
        name,
        buildable=True,
        attention=tuple(kernel for kernel in ATTENTION if kernel == "eager" or _runs(name, settings, kernel)),
        float64=_runs(name, settings, "eager", double=True),
        static_cache=_declares_static_cache(model),
        accepts_position_ids=_takes_position_ids(model) and "no_position_ids" not in facts(name),
        encoder_decoder=bool(model.config.is_encoder_decoder),
        own_generate=_replaces_generate(model),
        default_cache=upstream.has_default_cache(model),
    )


def gives_logits(name: str, settings: Mapping[str, Json], tokens: int) -> bool:
    """Whether a model of this type with these settings can be made and runs over so many tokens."""
    try:
        _forward(build_model(name, settings), tokens)
    except Exception:  # noqa: BLE001 - as in `_runs`
        return False
    return True


def _runs(name: str, settings: Mapping[str, Json], attention: str, double: bool = False) -> bool:
    try:
        model = build_model(name, settings, attention)
        _forward(model.double() if double else model)
    except Exception:  # noqa: BLE001 - the refusals are of every type, from NotImplementedError to RuntimeError
        return False
    # A forward that casts a router to float32 for good leaves no model in double precision.
    return not double or {str(parameter.dtype) for parameter in model.parameters()} == {"torch.float64"}


def _forward(model: PreTrainedModel, count: int = 2) -> None:
    """One forward over tokens: 3, 4, 3, 4, ..."""
    import torch

    tokens = torch.tensor([[3 + place % 2 for place in range(count)]])
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    with torch.no_grad():
        model(**inputs)


def _replaces_generate(model: PreTrainedModel) -> bool:
    from transformers import GenerationMixin

    return getattr(type(model), "generate", None) is not GenerationMixin.generate


def _takes_position_ids(model: PreTrainedModel) -> bool:
    return "position_ids" in inspect.signature(model.forward).parameters


def _declares_static_cache(model: PreTrainedModel) -> bool:
    """A static cache needs a model that takes the default caches and whose forward has no data-dependent shapes."""
    return bool(getattr(model, "_can_compile_fullgraph", False)) and upstream.has_default_cache(model)
