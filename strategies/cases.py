"""Whole cases. A family that draws something of its own has a module of its name in `families`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Literal

from hypothesis import strategies as st

from conformance.architectures.capabilities import capabilities
from conformance.architectures.cells import reachable
from conformance.architectures.media import reserved_tokens
from conformance.architectures.options import options
from conformance.architectures.ropes import BY_LENGTH, FIXED, SCALINGS, ropes, stretched
from conformance.architectures.scales import scales_of
from conformance.architectures.shrink import tiny_config
from conformance.case import Case, ModelSpec, Plan, Prompt, Settings, known_plans
from conformance.errors import BadInput, NotBuildable, unknown
from conformance.strategies import families
from conformance.strategies.architectures import configs, sizes_with
from conformance.strategies.prompts import media_span, prompts
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings
from conformance.strategies.tying import room, tied_weights

KIND = "kind: "  # how an event names a cache kind
WINDOW_NAMES = ("sliding_window", "sliding_window_size", "attention_window_size", "attention_chunk_size")


@st.composite
def models(
    draw: st.DrawFn,
    architecture: str | st.SearchStrategy[str],
    *,
    towards: Collection[str] = (),
    tied: bool | None = None,
    init_scales: Sequence[float] | None = None,
    scalings: Sequence[str] = FIXED,
) -> ModelSpec:
    """A tiny model of one type: its config, weight seed and scale, dtype, attention kernel and tied weights.

    `towards` holds cache kinds as events (`kind: sliding`): half of the draws then have one of those that the type
    reaches. `tied` ties weights always or never; left open, once in sixteen draws. `init_scales` replaces the type's
    own. `scalings` are the kinds of `rope_type` of which one is drawn now and then where positions are rotary: left
    out, those whose frequencies are made once; none for (). Shrinks to the smallest valid config, float32, eager,
    nothing tied. Only what the type supports is drawn.
    Raises NotBuildable for a type that the installed release cannot make, BadInput for no scales of weights, and for a
    kind of scaling that there is not.
    """
    name = draw(architecture) if isinstance(architecture, st.SearchStrategy) else architecture
    can = capabilities(name)
    if not can.buildable:
        raise NotBuildable(f"{name} cannot be built: {can.reason}")
    if init_scales is not None and not init_scales:
        raise BadInput("init_scales=() leaves nothing to draw")
    for scaling in scalings:
        if scaling not in SCALINGS:
            raise unknown("rope type", scaling, SCALINGS)
    kernels: tuple[Literal["eager", "sdpa"], ...] = tuple(k for k in ("eager", "sdpa") if k in can.attention)
    config = {**draw(_configs_towards(name, towards)), **draw(_options(name))}
    config |= draw(_scaled(name, config, scalings))
    ties = tied if tied is not None else draw(rarely(True, False, one_in=16)) and bool(room(name, config))
    return ModelSpec(
        architecture=name,
        config=config,
        weight_seed=draw(st.integers(0, 2**32 - 1)),
        init_scale=draw(st.sampled_from(tuple(init_scales or scales_of(name)))),
        dtype=draw(rarely("float64", "float32", one_in=8)) if can.float64 else "float32",
        attention=draw(st.sampled_from(kernels)),
        tied=tuple(draw(tied_weights(architecture=name, config=config))) if ties else (),
    )


@st.composite
def _configs_towards(draw: st.DrawFn, name: str, towards: Collection[str]) -> Mapping[str, Any]:
    """Settings of a type; half of them with a cache kind that is wanted, where it has one."""
    wanted = sorted(kind for kind in reachable(name) if f"{KIND}{kind}" in towards)
    if wanted:
        kind: str = draw(st.sampled_from([*wanted, *[""] * len(wanted)]))
        if kind:
            return tiny_config(name, draw(sizes_with(name, kind)))
    return draw(_configs(name))


@st.composite
def _options(draw: st.DrawFn, name: str) -> Mapping[str, Any]:
    """Once in four draws something that a default config hides, now and then two of them; shrinks to nothing."""
    possible = options(name)
    if not possible or not draw(rarely(True, False, one_in=4)):
        return {}
    some = [draw(st.sampled_from(possible)) for _ in range(draw(rarely(2, 1, one_in=4)))]
    return {attribute: value for option in some for attribute, value in option.items()}


@st.composite
def _scaled(draw: st.DrawFn, name: str, config: Mapping[str, Any], scalings: Sequence[str]) -> Mapping[str, Any]:
    """Once in eight draws positions that are stretched; shrinks to nothing."""
    if not scalings or not draw(rarely(True, False, one_in=8)):
        return {}
    possible = [scaling for scaling in ropes(name) if scaling in scalings]
    return stretched(name, draw(st.sampled_from(possible)), config) if possible else {}


@cache
def _configs(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return configs(name)


def value_of(config: Mapping[str, Any], name: str, default: int) -> int:
    """The first integer that a config's settings hold under an attribute of this name, nested or not."""
    found = (v for path, v in config.items() if path.rsplit(".", 1)[-1] == name and isinstance(v, int))
    return next(found, default)


def landmarks_of(model: ModelSpec) -> tuple[int, ...]:
    """The lengths at which this model's behaviour changes: its windows."""
    return tuple({value for name in WINDOW_NAMES if (value := value_of(model.config, name, 0)) > 0})


def cases(family: str, architecture: str, *, towards: Collection[str] = ()) -> st.SearchStrategy[Case]:
    """Cases of one check family on one type, the family's plan included.

    `towards` names events that a run has not reached yet; draws lean that way where a draw can. A family's module may
    have a `cases(architecture, towards=...)` of its own, which then steers everything, or `settings` of its own, with
    the arguments of those that every family draws.
    """
    own: Callable[..., st.SearchStrategy[Case]] | None = getattr(module_of(family), "cases", None)
    return own(architecture, towards=towards) if own else general_cases(family, architecture, towards=towards)


@st.composite
def general_cases(draw: st.DrawFn, family: str, architecture: str, *, towards: Collection[str] = ()) -> Case:
    """A case with a model, a prompt and settings as every family draws them, and the plan of this one.

    Prompts hold images where the family's module says so, by `IMAGES`, and frequencies follow the length where it says
    `ANY_ROPE`: keys that are cached then keep the older ones, so that nothing else computes the same. Two images in a
    row are an order to be kept where a row becomes several, so that several are sampled then.
    """
    scalings = (*FIXED, *BY_LENGTH) if getattr(module_of(family), "ANY_ROPE", False) else FIXED
    model = draw(models(architecture, towards=towards, scalings=scalings))
    vocabulary, ragged = vocabulary_of(model), "rows: padded" in towards
    several = ragged or "rows: several" in towards or "stop: rows differ" in towards
    rows = draw(st.sampled_from((2, 3) if several else (1, 2, 1, 2, 3)))
    images = media_span(architecture) if getattr(module_of(family), "IMAGES", False) else (0, 0)
    prompt = draw(
        prompts(vocabulary=vocabulary, rows=(rows, rows), ragged=ragged, landmarks=landmarks_of(model), images=images)
    )
    drawn = getattr(module_of(family), "settings", settings)
    eager = model.attention == "eager"
    chosen = draw(drawn(vocabulary=vocabulary, rows=rows, attentions=eager, towards=towards))
    chosen = chosen.replace(returned=2) if prompt.images > 1 and chosen.do_sample else chosen
    plan = draw(plans(family, model, prompt, chosen))
    return Case(family=family, model=model, prompt=prompt, settings=chosen, plan=plan)


def vocabulary_of(model: ModelSpec) -> int:
    """The number of token ids that both sides of the model know, without those that stand for images."""
    sizes = [v for path, v in model.config.items() if path.rsplit(".", 1)[-1] == "vocab_size" and isinstance(v, int)]
    return min(sizes, default=40) - reserved_tokens(model.architecture)


def plans(family: str, model: ModelSpec, prompt: Prompt, chosen: Settings) -> st.SearchStrategy[Plan | None]:
    """The plans of a family: those of its module, or the plain one."""
    own: Callable[..., st.SearchStrategy[Plan]] | None = getattr(module_of(family), "plans", None)
    if own is None:
        kind = known_plans().get(family)
        return st.just(kind() if kind else None)
    return own(model=model, prompt=prompt, settings=chosen)


def module_of(family: str) -> ModuleType | None:
    """The family's module in `conformance.strategies.families`, or None where it has none."""
    name = f"{families.__name__}.{family}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
