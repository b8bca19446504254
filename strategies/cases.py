"""Whole cases. A family that draws something of its own has a module of its name in `families`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any, Literal

from hypothesis import strategies as st

from conformance.architectures.capabilities import capabilities
from conformance.architectures.media import reserved_tokens
from conformance.case import Case, ModelSpec, Plan, Prompt, Settings, known_plans
from conformance.strategies import families
from conformance.strategies.architectures import configs
from conformance.strategies.prompts import prompts
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings

SCALES = (0.3, 0.2, 0.4, 0.15, 0.5, 0.1, 0.6)
WINDOW_NAMES = ("sliding_window", "sliding_window_size", "attention_window_size", "attention_chunk_size")


@st.composite
def models(draw: st.DrawFn, architecture: str) -> ModelSpec:
    """A tiny model of one type: its config, weight seed and scale, dtype and attention kernel.

    Shrinks to the smallest valid config, float32, eager. Only what the type supports is drawn.
    """
    can = capabilities(architecture)
    kernels: tuple[Literal["eager", "sdpa"], ...] = tuple(k for k in ("eager", "sdpa") if k in can.attention)
    return ModelSpec(
        architecture=architecture,
        config=draw(configs(architecture)),
        weight_seed=draw(st.integers(0, 2**32 - 1)),
        init_scale=draw(st.sampled_from(SCALES)),
        dtype=draw(rarely("float64", "float32", one_in=8)) if can.float64 else "float32",
        attention=draw(st.sampled_from(kernels)),
    )


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
    have a `cases(architecture, towards=...)` of its own, which then steers everything.
    """
    own: Callable[..., st.SearchStrategy[Case]] | None = getattr(module_of(family), "cases", None)
    return own(architecture, towards=towards) if own else general_cases(family, architecture, towards=towards)


@st.composite
def general_cases(draw: st.DrawFn, family: str, architecture: str, *, towards: Collection[str] = ()) -> Case:
    """A case with a model, a prompt and settings as every family draws them, and the plan of this one."""
    model = draw(models(architecture))
    vocabulary, ragged = vocabulary_of(model), "rows: padded" in towards
    several = ragged or "rows: several" in towards or "stop: rows differ" in towards
    rows = draw(st.sampled_from((2, 3) if several else (1, 2, 1, 2, 3)))
    prompt = draw(prompts(vocabulary=vocabulary, rows=(rows, rows), ragged=ragged, landmarks=landmarks_of(model)))
    chosen = draw(settings(vocabulary=vocabulary, rows=rows, attentions=model.attention == "eager", towards=towards))
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
