"""The constants of scripts of the `purity` family: the cache that is asked for, and where rows begin and end."""

from __future__ import annotations

from conformance import upstream
from conformance.build import Scenario
from conformance.plans.purity import PurityPlan
from conformance.reporting.source import literal


def constants(scenario: Scenario) -> dict[str, str]:
    """NAME → source, of each that `scripts/frame.py` tells of this family."""
    plan = scenario.case.plan
    assert isinstance(plan, PurityPlan)
    static = plan.static and upstream.has_default_cache(scenario.pristine)
    return {
        "CHANGES": literal(upstream.static_cache_settings() if static else {}),
        "START": str(scenario.width()),
        "ENDS": literal(list(scenario.case.settings.eos)),
    }
