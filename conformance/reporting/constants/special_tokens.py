"""The constants of scripts of the `special_tokens` family: the ids in three forms, what they give, and their use."""

from __future__ import annotations

import torch

from conformance.build import Scenario
from conformance.plans.special_tokens import Id, SpecialTokensPlan, plainly
from conformance.reporting.case_source import written
from conformance.special_tokens.expected import expected_ids


def constants(scenario: Scenario) -> dict[str, str]:
    """NAME → source, of each that `scripts/frame.py` tells of this family."""
    plan = scenario.case.plan
    assert isinstance(plan, SpecialTokensPlan)
    spoken = plan.spoken(scenario.case.settings.eos, scenario.vocabulary)
    expected = expected_ids(plan, scenario.encoder_decoder)
    extras = {"beams": {"num_beams": 2}, "lookup": {"prompt_lookup_num_tokens": plan.draft}}
    return {
        "IDS": _sources(plan.ids),
        "EXPECTED_IDS": repr(expected.refusal or expected.values),
        "SPOKEN": _sources(spoken),
        "PLAINLY": _sources(plainly(spoken)),
        "BY_KEYWORD": repr(plan.keywords),
        **_starts(scenario, plan),
        "HAS_MASK": repr(plan.has_mask),
        "EXPLICIT_DEVICE": repr(plan.explicit_device),
        "EXTRAS": repr(extras.get(plan.mode, {})),
        "DRAFT": repr(plan.draft if plan.mode == "assisted" else 0),
        "MISPLACED": repr(list(plan.misplaced)),
    }


def _starts(scenario: Scenario, plan: SpecialTokensPlan) -> dict[str, str]:
    """What is left out of a call whose ids say how it starts, and what is not."""
    ids, tokens = plan.starting(len(scenario.rows), scenario.vocabulary, scenario.encoder_decoder)
    inputs = scenario.inputs() if scenario.encoder_decoder else {}
    before = written({name: value for name, value in inputs.items() if not name.startswith("decoder_")})
    before |= {"num_beams": "2"} if plan.mode == "beams" else {}
    name = "decoder_input_ids" if scenario.encoder_decoder else "input_ids"
    passed = {name: torch.tensor(tokens)[:, None]} if tokens else {}
    return {"STARTS": _sources(ids), "BEFORE": _dict(before), "PASSED": _dict(written(passed))}


def _dict(sources: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {source}' for name, source in sources.items()) + "}"


def _sources(ids: dict[str, Id]) -> str:
    return _dict({f"{name}_token_id": _source(one) for name, one in ids.items()})


def _source(one: Id) -> str:
    """What the caller passes."""
    value = one.value()
    if one.form not in ("scalar", "tensor") or value is None:
        return repr(value)
    device = ', device="meta"' if one.device == "meta" else ""
    return f"torch.tensor({list(one.values) if one.shape else one.values[0]}, dtype=torch.{one.dtype}{device})"
