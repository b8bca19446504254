"""The constants of scripts of the `stopping` family: what the call asks for, and the caller's cache and hook."""

from __future__ import annotations

from typing import Any

from conformance import upstream
from conformance.build import Scenario
from conformance.reporting.case_source import set_fields
from conformance.reporting.source import literal
from conformance.runs import Runs
from conformance.stopping.calls import PLAIN, config_of, places
from conformance.subjects.installed import Installed

HOOKS = {"processor": "logits_processor", "criterion": "stopping_criteria", "streamer": "streamer"}


def constants(scenario: Scenario) -> dict[str, str]:
    """NAME → source, of each that `scripts/frame.py` tells of this family.

    A model runs only to learn how many tokens a cache has to hold that fits exactly.
    """
    plan = scenario.case.plan
    runs = Runs(scenario.case, Installed())
    return {
        "CHANGES": literal(config_of(runs)),
        "CACHE": literal(_cache(runs) if plan is not None and plan.passed_in else {}),
        "NAME": literal(upstream.cache_argument(scenario.pristine)),
        "SECOND": literal(_second(scenario)),
        "START": str(scenario.width()),
        "HOOK": literal(HOOKS.get(plan.raises, "")) if plan is not None else "''",
        "RAISES_AT": str(plan.raises_at),
    }


def _second(scenario: Scenario) -> dict[str, Any]:
    """Changes of the generation config for a call that goes on: those that change something."""
    told = set_fields(scenario.generation_config())
    return {name: value for name, value in PLAIN.items() if name in told} | {"max_new_tokens": 2}


def _cache(runs: Runs) -> dict[str, Any]:
    """Fields of the generation config that make the caller's cache."""
    if not runs.case.plan.static:
        return {}
    return upstream.static_cache_settings() | {"max_new_tokens": places(runs, runs.call(**config_of(runs)))}
