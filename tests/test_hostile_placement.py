"""Subjects of strangers that place, load, plan or audit: whatever they raise or give back is their failure."""

from __future__ import annotations

import pytest
from toolbox import CHECKS_OF, small_case
from torch import nn

from conformance.judge import judge
from conformance.plans.placement import PlacementPlan
from conformance.subjects.installed import Installed

PLACING, LOADS, STRANDED = "planning-never-crashes", "checkpoint-loads-as-saved", "stranded-weight-is-named"
AUDITED = "audit-accuses-nothing-right"


class OwnInterrupt(KeyboardInterrupt):
    """What a library may raise, and nobody typed."""


class Stranger(Installed):
    """Answers one question in its own way."""

    name = "stranger"

    def __init__(self, method, answer):
        setattr(self, method, answer)


def raises(error):
    def answer(*_, **__):
        raise error

    return answer


def gives(value):
    return lambda *_, **__: value


def verdicts(method, answer, **plan):
    case = small_case(family="placement", plan=PlacementPlan(map="auto", budget=(60,), **plan))
    return judge(case, CHECKS_OF["placement"], Stranger(method, answer)).verdicts


def failure(verdict):
    assert (verdict.status, len(verdict.differences)) == ("fail", 1)
    return verdict.differences[0].got


@pytest.mark.parametrize(
    ("method", "must"), [("place", "a model with its configs"), ("planned", "a recipe with a device_map")]
)
@pytest.mark.parametrize(
    ("value", "shown"), [(None, "None"), (5, "5"), (object(), "a object"), (nn.Linear(1, 1), "a Linear")]
)
def test_what_is_no_answer_is_a_failure_of_placing(method, must, value, shown):
    found = verdicts(method, gives(value))
    assert failure(found[PLACING]).startswith(f"TypeError: {method} returned {shown}, and must return {must}")
    others = {name: verdict.status for name, verdict in found.items() if name != PLACING}
    assert "fail" not in others.values()


@pytest.mark.parametrize("method", ["place", "planned"])
@pytest.mark.parametrize("error", [SystemExit(3), OwnInterrupt("no"), GeneratorExit()], ids=lambda e: type(e).__name__)
def test_whatever_placing_raises_keeps_its_name(method, error):
    assert failure(verdicts(method, raises(error))[PLACING]).startswith(f"{type(error).__name__}:")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (gives(None), "TypeError: load returned None, and must return a model"),
        (raises(SystemExit(3)), "SystemExit: 3"),
    ],
)
def test_what_a_loader_of_its_own_does_is_a_failure_of_loading(answer, said):
    found = verdicts("load", answer)
    assert failure(found[LOADS]).startswith(said)
    assert found[PLACING].status == "not-applicable"


def test_whatever_an_audit_raises_keeps_its_name():
    audit = raises(OwnInterrupt("no"))
    assert failure(verdicts("audit", audit)[AUDITED]) == "OwnInterrupt: no"
    assert failure(verdicts("audit", audit, stranded=0)[STRANDED]).startswith("OwnInterrupt: no")


def test_a_request_to_end_the_run_goes_through():
    with pytest.raises(KeyboardInterrupt):
        verdicts("place", raises(KeyboardInterrupt()))
