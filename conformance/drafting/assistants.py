"""The assistant model of a case: derived from the main model, so that how much is accepted is drawn, not hoped for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from conformance import upstream
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.case import Case, ModelSpec, plain
from conformance.drafting.translated import foreign
from conformance.errors import BadInput, NotBuildable
from conformance.plans.prefill import PrefillPlan
from conformance.weights import fill

JUST = 1e-2  # by so much is a token of a script above all others: as many chances as there were are left
OWN_DEFAULT = 20  # what an assistant's own config says where the call says how much to draft
# What it may say besides: none of it is the call's, and drafts decide nothing.
OWN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "least": {"min_new_tokens": 4},
    "most": {"max_length": 6},
    "penalty": {"repetition_penalty": 1.5},
}


def assistant(scenario: Scenario, plan: PrefillPlan) -> Any:
    """A new assistant model in evaluation mode, its own generation config set as the plan says.

    Where a type cannot do with one layer fewer, `shallow` is `noisy`. Raises NotBuildable.
    """
    model = _derived(scenario, plan)
    own = model.generation_config
    own.num_assistant_tokens = OWN_DEFAULT if plan.argument else plan.most
    own.num_assistant_tokens_schedule = plan.schedule
    own.assistant_confidence_threshold = plan.threshold
    if plan.assistant_static:
        own.cache_implementation = "static"
    vars(own).update(OWN[plan.assistant_own])
    return model


def _derived(scenario: Scenario, plan: PrefillPlan) -> Any:
    if drafts_blocks(scenario, plan):
        model = upstream.block_drafter(scenario.pristine, plan.most)
        fill(model, plan.assistant_seed, scenario.case.model.init_scale)
        return model
    if shares_states(scenario, plan):
        model = upstream.sharing_drafter(scenario.pristine)
        fill(model, plan.assistant_seed, scenario.case.model.init_scale)
        return model
    source, noise = origin(scenario, plan)
    model = source.model(dtype=retyped(scenario, plan), noise=noise)
    if plan.drafter == "scripted":
        follow(model, plan.script)
    return model


def drafts_blocks(scenario: Scenario, plan: PrefillPlan) -> bool:
    """Whether a block is drafted at once, by an assistant that reads the main model's hidden states.

    For text and decoders of which the widths fit one; else `block` is the model itself, as any unknown drafter.
    """
    if plan.drafter != "block" or not upstream.drafts_blocks() or scenario.encoder_decoder or scenario.media:
        return False
    return upstream.block_drafter(scenario.pristine, plan.most) is not None


def shares_states(scenario: Scenario, plan: PrefillPlan) -> bool:
    """Whether an assistant drafts from the main model's own keys and values; else `sharing` is the model itself."""
    if plan.drafter != "sharing" or not upstream.shares_states(scenario.model_class.__name__):
        return False
    return upstream.sharing_drafter(scenario.pristine) is not None


def retyped(scenario: Scenario, plan: PrefillPlan) -> str | None:
    """The assistant's dtype where it is not the main model's; what is given both has one, so not with embeddings."""
    if not plan.assistant_retyped or plan.embeds or scenario.media:
        return None
    return "float32" if scenario.case.model.dtype == "float64" else "float64"


def origin(scenario: Scenario, plan: PrefillPlan) -> tuple[Scenario, tuple[int, float] | None]:
    """The scenario whose model is the assistant, and the noise on its weights; a script is not told of."""
    if plan.drafter == "shallow" and (spec := shallower(scenario.case.model)) is not None:
        try:
            source = _of(scenario.case, spec)
            _ = source.pristine
        except (BadInput, NotBuildable):
            pass
        else:
            return source, None
    if plan.drafter == "translated":
        return foreign(scenario, plan), None
    if plan.drafter == "other":
        return _of(scenario.case, other(scenario, plan)), None
    noisy = plan.drafter in ("noisy", "shallow")
    return scenario, (plan.assistant_seed, plan.noise) if noisy else None


def shallower(spec: ModelSpec) -> ModelSpec | None:
    """The same model without its last layer, or None where it has one layer or lists them in a way of its own."""
    config = dict(plain(spec.config))
    counts = [path for path in config if path.rsplit(".", 1)[-1] == "num_hidden_layers" and config[path] > 1]
    if not counts:
        return None
    for path in counts:
        count = config[path]
        config[path] = count - 1
        prefix = path.rpartition(".")[0]
        for name, value in config.items():
            if name.rpartition(".")[0] == prefix and isinstance(value, list) and len(value) == count:
                config[name] = value[:-1]
    return spec.replace(config=config)


def other(scenario: Scenario, plan: PrefillPlan) -> ModelSpec:
    """Another tiny model with the same vocabulary: Llama, or one of the main model's own type where Llama cannot be.

    That is for an encoder-decoder model, for images, and for embeddings, which have the main model's width.
    """
    spec = scenario.case.model
    if scenario.encoder_decoder or plan.embeds or scenario.media:
        return spec.replace(weight_seed=plan.assistant_seed)
    config = {**tiny_config("llama"), "vocab_size": scenario.vocabulary}
    return ModelSpec(config=config, weight_seed=plan.assistant_seed, dtype=spec.dtype)


def _of(case: Case, spec: ModelSpec) -> Scenario:
    return Scenario(case.replace(model=spec, fingerprint=None))


def say(model: Any, script: Sequence[bool], tokens: Sequence[int], start: int) -> None:
    """Have a model that drafts from one position say the right tokens wherever `script`, over and over, says so.

    tokens: those that follow `start` ids of the prompt. What it says else is its own.
    """
    right, place, drafted = model.forward, -1, 0

    @functools.wraps(right)
    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal place, drafted
        outputs, now = right(*args, **kwargs), int(kwargs["position_ids"].max())
        place, drafted = now, drafted + 1 if now == place else 0
        step = place + 1 - start + drafted
        if 0 <= step < len(tokens) and script[step % len(script)]:
            outputs.logits[..., tokens[step]] = outputs.logits.max() + JUST
        return outputs

    model.forward = forward


def follow(model: Any, script: Sequence[bool]) -> None:
    """Have a model prefer another token than its own for every position where `script`, over and over, says so."""
    right, calls = model.forward, iter(range(10**9))

    @functools.wraps(right)  # its signature is looked at
    def forward(*args: Any, **kwargs: Any) -> Any:
        outputs = right(*args, **kwargs)
        position = upstream.length_of(upstream.cache_of(outputs))
        if not script[(next(calls) if position is None else position) % len(script)]:
            outputs.logits = outputs.logits.roll(1, dims=-1)
        return outputs

    model.forward = forward
