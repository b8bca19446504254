"""The plan of the `purity` family."""

from __future__ import annotations

from conformance.case import Plan


class PurityPlan(Plan, family="purity"):
    """Nothing beyond the case itself."""
