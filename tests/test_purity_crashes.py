"""A call that raises in the subject has shown nothing, but for what it changed all the same."""

import pytest
from toolbox import CHECKS_OF, small_case

from conformance.judge import judge
from conformance.plans.purity import PurityPlan
from conformance.subjects.installed import Installed

UNCHANGED, RETURNED, NONE = "nothing-of-the-callers-changed", "returned-stays-as-it-was", "not-applicable"


class Made:
    """A subject whose answer to a call is what `answer(model, call)` gives."""

    name = "made"

    def __init__(self, answer):
        self.answer = answer

    def generate(self, model, call):
        return self.answer(model, call)


def raising(*_):
    raise ValueError("not today")


def editing(_, call):
    call.generation_config.low_memory = "edited"
    raise ValueError("not today")


def one_call_only(model, call):
    """Raises for every other call than the first on a model."""
    if hasattr(model, "called"):
        raise ValueError("once only")
    output = Installed().generate(model, call)
    object.__setattr__(model, "called", True)
    return output


def verdicts(answer, **plan):
    case = small_case(rows=((3, 4, 5), (6, 7)), family="purity", plan=PurityPlan(**plan))
    return judge(case, CHECKS_OF["purity"], Made(answer)).verdicts


@pytest.mark.parametrize("plan", [{}, {"raises": 2}, {"keywords": True}, {"static": True}])
@pytest.mark.parametrize("answer", [lambda *_: None, lambda *_: 42, raising], ids=["none", "a number", "raises"])
def test_no_check_passes_where_every_call_raises(answer, plan):
    assert {name: verdict.status for name, verdict in verdicts(answer, **plan).items()} == dict.fromkeys(
        CHECKS_OF["purity"], NONE
    )


def test_the_reason_says_what_was_raised():
    reason = verdicts(raising)[UNCHANGED].reason
    assert reason.startswith("the call raises: ValueError: not today")


def test_what_a_call_that_raises_changed_is_a_failure_all_the_same():
    assert verdicts(editing)[UNCHANGED].status == "fail"


def test_another_call_that_raises_says_nothing_of_what_was_returned():
    found = verdicts(one_call_only)[RETURNED]
    assert found.status == NONE
    assert found.reason.startswith("the other call raises: ValueError: once only")


@pytest.mark.parametrize("plan", [{}, {"raises": 2}])
def test_a_processor_that_raises_is_what_is_looked_at(plan):
    answer = Installed().generate
    assert {name for name, verdict in verdicts(answer, **plan).items() if verdict.status == "pass"} >= {
        UNCHANGED,
        RETURNED,
    }
