"""Each broken cache is found by the check meant for it, on a case that is sound without the fault."""

import hypothesis
import pytest
from zoo.broken_caches import BROKEN, STEERED

from conformance import registry, uniform
from conformance.judge import judge
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed

EXAMPLES = 200  # a broken cache is found within so many cases


class Found(BaseException):
    """Not an Exception, so that Hypothesis lets it through."""


def fails(case, check):
    return judge(case, [check], Installed()).verdicts[check].status == "fail"


@pytest.mark.parametrize(
    "broken",
    [pytest.param(broken, id=broken.name, marks=[pytest.mark.slow] if broken.slow else []) for broken in BROKEN],
)
def test_found_by_the_check_meant_for_it(broken):
    @hypothesis.settings(
        max_examples=EXAMPLES,
        backend=uniform.NAME,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.seed(1)
    @hypothesis.given(cases("rollback", broken.architecture))
    def explore(case):
        with broken.planted():
            found = fails(case, broken.found_by)
        if found and not fails(case, broken.found_by):
            raise Found

    with pytest.raises(Found):
        explore()


def test_every_check_of_the_family_trips_on_something():
    family = {name for name, check in registry.checks().items() if check.family == "rollback"}
    assert {broken.found_by for broken in BROKEN} | STEERED == family
