"""The constants of scripts of the `prefill` family: how a prompt arrives, who drafts, and what the call asks for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from conformance.architectures import catalogue
from conformance.build import Scenario
from conformance.case import ModelSpec
from conformance.drafting import assistants
from conformance.drafting.modes import Modes
from conformance.drafting.processors import told_as_text
from conformance.drafting.turns import EARLIER, span
from conformance.endings import text_of
from conformance.plans.drafters import MODELS
from conformance.plans.prefill import PrefillPlan
from conformance.reporting.case_source import constructor_arguments, set_fields
from conformance.reporting.source import literal
from conformance.runs import Runs
from conformance.subjects import load


def constants(scenario: Scenario) -> dict[str, str]:
    """NAME → source, of each that `scripts/frame.py` tells of this family; a model runs only to look up stop tokens."""
    own = Modes(Runs(scenario.case, load("installed")))
    plan, parts = own.plan, own.everything
    cached, told = "turns" in parts, told_as_text(own.stops) if plan.stop_strings else []
    spans = [span(own, before, turn) for before, turn in pairwise((0, *own.turns))]
    return {
        "START": str(own.start(parts)),
        "ENDS": literal(list(own.ends)),
        "CHANGES": literal(own.config(parts)),
        "TURNS": literal([(begin, end, _without(changes)) for begin, end, changes in spans]),
        "GIVEN": str(own.left_out(own.turns[-1], own.width) if cached else 0),
        "MASKED": str(not own.bare),
        "POSITIONED": str(own.positions),
        "FIRSTS": str(own.first_iterations),
        "MOST": str(plan.most),
        "PLACEHOLDERS": str(own.placeholders),
        "DRAFTING": literal(_drafting(plan)),
        "NOISE": literal((plan.assistant_seed, plan.noise)),
        **({"OTHER": literal(_other(scenario, own))} if plan.drafter in ("shallow", "other") else {}),
        "STOPPING": _stopping(tuple(token for token in own.stops if token not in told)),
        "STRINGS": literal([text_of(token) for token in told]),
        "LONGEST": str(own.start(parts) + scenario.case.settings.max_new_tokens),
        "VOCABULARY": str(scenario.vocabulary),
        "SCRIPT": literal(list(plan.script)),
        "BEGUN": literal(_drafting(EARLIER)),
        "RAISING": _raising(plan.raises),
    }


def _without(changes: dict[str, Any]) -> dict[str, Any]:
    """The changes but for those of every such call."""
    return {name: value for name, value in changes.items() if name not in ("eos_token_id", "do_sample")}


def _stopping(tokens: tuple[int, ...]) -> str:
    if not tokens:
        return "{}"
    ends = f"torch.isin(ids[:, -1], torch.tensor({literal(list(tokens))}))"
    return f'{{"stopping_criteria": [lambda ids, *_, **__: {ends}]}}'


def _raising(calls: int) -> str:
    raises = f"lambda _, scores, left=iter(range({calls})): (next(left), scores)[1]"
    return f'{{"logits_processor": [{raises}]}}'


def _drafting(plan: PrefillPlan) -> dict[str, Any]:
    """What the generation config of the model that drafts holds."""
    if plan.drafter not in (*MODELS, "early_exit"):
        return {}
    most = assistants.OWN_DEFAULT if plan.argument and plan.drafter in MODELS else plan.most
    tuned = {
        "num_assistant_tokens": most,
        "num_assistant_tokens_schedule": plan.schedule,
        "assistant_confidence_threshold": plan.threshold,
    }
    static = {"cache_implementation": "static"} if plan.assistant_static else {}
    return tuned | (static | assistants.OWN[plan.assistant_own] if plan.drafter in MODELS else {})


def _other(scenario: Scenario, own: Modes) -> tuple[Any, ...]:
    """The assistant's class, config, kernel, dtype and weights, and own generation config."""
    spec = assistants.other(scenario, own.plan) if own.plan.drafter == "other" else _shallower(scenario.case.model)
    made = Scenario(scenario.case.replace(model=spec, fingerprint=None))
    config = {"model_type": made.architecture.model_type, **constructor_arguments(made.case)}
    weights = (spec.attention, spec.dtype, spec.weight_seed, spec.init_scale)
    plain = set_fields(made.plain_generation_config())
    return catalogue.get(spec.architecture).class_name, config, weights, plain


def _shallower(spec: ModelSpec) -> ModelSpec:
    return assistants.shallower(spec) or spec
