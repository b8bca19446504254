"""Stored cases that would be judged as another than they say are refused in a line; no such case is drawn or left."""

import json

import pytest
from hypothesis import given
from toolbox import small_case

from conformance.build import Scenario
from conformance.case import parse_case
from conformance.errors import CaseRefused
from conformance.plainer import plainer_cases
from conformance.plans.cached import CachedPlan
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_fitting import fitting, nonsense
from conformance.plans.rollback_programs import Op
from conformance.profiles import exploring
from conformance.strategies.cases import cases

PREFILL, FEED = {"op": "prefill"}, {"op": "feed", "tokens": [5, 6]}
REPEAT = {"op": "repeat", "count": 8}
AGAIN, NEW_BATCH = [PREFILL, {"op": "reset"}], {"op": "prefill", "rows": [0, 0, 0]}
IMPOSSIBLE = {
    "nothing is fed": ([{"op": "record"}], r"0: nothing is ever fed to the cache of record"),
    "nothing is fed to the second": ([PREFILL, {"op": "fresh"}, {"op": "record"}], r"2: nothing is ever fed"),
    "no such row": (
        [PREFILL, {"op": "select", "rows": [7]}],
        r"1: select\(7\) is of no effect: a batch of 1 has no row 7",
    ),
    "no rows": ([PREFILL, {"op": "reorder"}], r"1: reorder\(\) is of no effect: no rows"),
    "too many": ([PREFILL, *[REPEAT] * 10], r"2: repeat\(8\) is of no effect: 8 times 8 is no larger batch"),
    "once": ([PREFILL, {"op": "repeat", "count": 1}], r"1: repeat\(1\) is of no effect: 1 times 1 is no larger"),
    "fed before the prompt": ([FEED, PREFILL], r"0: feed\(5, 6\) is of no effect: the cache is empty there"),
    "no tokens": ([PREFILL, {"op": "feed"}], r"1: feed\(\) is of no effect: it has no tokens"),
    "filled twice": ([PREFILL, PREFILL], r"1: prefill\(\) is of no effect: the cache is filled already"),
    "moved after a reset": ([PREFILL, {"op": "reset"}, REPEAT], r"2: repeat\(8\) is of no effect: the cache is empty"),
    "rows of a new cache": ([NEW_BATCH], r"0: prefill\(0, 0, 0\) is of no effect: a new cache is for all rows"),
    "no such row of the prompt": (
        [*AGAIN, {"op": "prefill", "rows": [0, 1]}],
        r"2: prefill\(0, 1\) is of no effect: the prompt has no row 1",
    ),
    "what it does not take": (
        [PREFILL, {"op": "crop", "tokens": [3]}],
        r"1: crop\(3\) is of no effect: it takes no tokens",
    ),
}
POSSIBLE = {
    "none": [],
    "more than there is": [PREFILL, FEED, {"op": "crop", "count": 9}],
    "an empty cache first": [{"op": "record"}, {"op": "crop", "count": 5}, PREFILL, FEED],
    "of nothing": [PREFILL, {"op": "crop"}],
    "an empty cache alone": [{"op": "crop", "count": 5}],
    "another batch after a reset": [*AGAIN, NEW_BATCH, {"op": "select", "rows": [2]}],
    "a row that was repeated": [PREFILL, {"op": "repeat", "count": 2}, {"op": "select", "rows": [1]}],
}


def scenario(program):
    document = small_case(family="rollback").to_dict() | {"plan": {"program": program}}
    return Scenario(parse_case(json.dumps(document)))


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_operation_of_no_effect_is_refused(name):
    program, said = IMPOSSIBLE[name]
    with pytest.raises(CaseRefused, match=rf"^plan\.program\.{said}") as refused:
        scenario(program)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_means_something_is_not(name):
    assert scenario(POSSIBLE[name])


def test_groups_of_more_than_is_fed_are_refused():
    case = small_case(plan=CachedPlan(continuation=(5, 6), groups=(5,)))
    with pytest.raises(CaseRefused, match=r"^plan\.groups are of 5 tokens, and plan\.continuation has 2$"):
        Scenario(case)
    assert Scenario(case.replace(plan=CachedPlan(continuation=(5, 6, 7), groups=(2,))))


def test_a_program_is_brought_to_fit():
    moved = (Op(op="repeat", count=8), Op(op="select", rows=(7, 2)), Op(op="repeat", count=5))
    program = (Op(op="record"), Op(op="fresh"), Op(op="feed", tokens=(3,)), Op(), *moved)
    assert fitting(program, 1) == (Op(), *moved[:2])
    assert fitting(program, 2) == (Op(), Op(op="select", rows=(1, 0)))
    assert not nonsense(fitting(program, 2), 2)


def test_a_batch_after_a_reset_is_brought_to_fit():
    again = (Op(), Op(op="reset"), Op(rows=(0, 1, 3)), Op(op="select", rows=(2,)))
    assert fitting(again, 2) == (*again[:2], Op(rows=(0, 1, 1)), again[3])
    assert fitting(again, 2, keeps=True)[3] == Op(op="select", rows=(0,)), "a static cache stays of two rows"
    assert fitting(again[2:], 2) == (Op(), Op(op="select", rows=(0,)))


def test_what_is_made_plainer_is_possible():
    program = (
        Op(op="record"),
        Op(),
        Op(op="repeat", count=2),
        Op(op="select", rows=(3, 0)),
        Op(op="feed", tokens=(5,)),
    )
    case = small_case(family="rollback", rows=((3,), (4,)), plan=RollbackPlan(program=program))
    told = [(one, nonsense(one.plan.program, len(one.prompt.rows))) for one in plainer_cases(case)]
    assert [reason for _, reason in told if reason] == []
    assert {len(one.prompt.rows) for one, _ in told} == {1, 2}
    grouped = small_case(plan=CachedPlan(continuation=(5, 6, 7), groups=(1, 2)))
    assert all(Scenario(one) for one in plainer_cases(grouped))


@pytest.mark.parametrize("family", ["rollback", "cached"])
def test_no_impossible_plan_is_drawn(family):
    @exploring(150)
    @given(cases(family, "llama"))
    def draw(case):
        assert case.plan.contradiction(case, 64) is None

    draw()
