"""Our Hypothesis settings, loaded explicitly.

Hypothesis' own `ci` profile switches itself on where CI is set, with a fixed seed and no database; deadlines
belong to timed tests, of which there are none.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from conformance import uniform

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example)


def exploring(examples: int) -> settings:
    """Draw `examples` cases and shrink nothing: failures are written down and shrunk one by one afterwards."""
    return settings(_base(), max_examples=examples, phases=(Phase.generate,))


def shrinking(examples: int) -> settings:
    """Draw the same cases up to a failing one, then make it smaller."""
    return settings(_base(), max_examples=examples, phases=(Phase.generate, Phase.shrink), report_multiple_bugs=False)


def _base() -> settings:
    return settings(
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        backend=uniform.NAME,
        suppress_health_check=QUIET,
    )
