"""Cases judged in a process of their own."""

import time

import pytest
from toolbox import small_case
from zoo import subjects

from conformance.clock import MODEL_CODE
from conformance.errors import BadInput
from conformance.isolation import Child, one_by_one
from conformance.judge import Judgement, judge
from conformance.subjects import load
from conformance.subjects.installed import Installed
from conformance.verdicts import Difference, Verdict

CACHED, PADDED = "cached-matches-recomputed", "padded-row-matches-alone"


@pytest.fixture(scope="module")
def child():
    process = Child(seconds=300)
    yield process
    process.close()


def test_it_gives_the_verdicts_and_events_that_judging_here_gives(child):
    case = small_case(rows=((3, 4, 5), (6, 7)), max_new_tokens=4, eos_at=((0, 1),))
    for subject in (subjects.DropsOldest(), Installed()):
        there, here = child.judge(case, (CACHED, PADDED), place(subject)), judge(case, (CACHED, PADDED), subject)
        assert there.verdicts == here.verdicts
        assert there.case == here.case
        assert there.case.settings.eos
        assert there.events == here.events


def test_its_time_in_model_code_is_counted_here_and_is_no_more_than_the_wait(child):
    case = small_case(max_new_tokens=8)
    child.judge(case, (CACHED,), "installed")
    before, start = MODEL_CODE.seconds, time.perf_counter()
    child.judge(case, (CACHED,), "installed")
    assert 0 < MODEL_CODE.seconds - before < time.perf_counter() - start


def test_a_process_that_ends_is_a_failure_of_the_case_and_the_next_case_has_another(child):
    lost = child.judge(small_case(rows=((3, 4), (5,))), (PADDED, CACHED), "zoo.subjects:EndsTheProcess")
    assert [difference.kind for difference in lost.verdicts[CACHED].differences] == ["crash"]
    assert (lost.verdicts[PADDED].status, lost.verdicts[PADDED].reason) == ("blocked-by", CACHED)
    assert child.judge(small_case(), (CACHED,), "installed").verdicts[CACHED].status == "pass"


def test_a_loss_belongs_to_the_check_that_meets_it_by_itself():
    case, passed = small_case(), Verdict("pass")
    loss = Difference("crash", "process", "a verdict", "the process ended")
    found = one_by_one(case, {CACHED: Judgement(case, {CACHED: passed}), PADDED: loss}, loss)
    assert {name: verdict.status for name, verdict in found.verdicts.items()} == {CACHED: "pass", PADDED: "fail"}


def test_a_loss_that_no_check_meets_by_itself_is_told_all_the_same():
    case, passed = small_case(), Verdict("pass")
    loss = Difference("crash", "process", "a verdict", "the process ended")
    found = one_by_one(case, {name: Judgement(case, {name: passed}) for name in (CACHED, PADDED)}, loss)
    assert found.verdicts == {CACHED: Verdict("fail", differences=(loss,)), PADDED: passed}


def test_a_process_that_hangs_is_a_failure_of_the_case():
    child = Child(seconds=0.0)
    assert child.judge(small_case(), (CACHED,), "installed").verdicts[CACHED].differences[0].kind == "hang"


def test_what_the_case_gets_wrong_is_said_here(child):
    with pytest.raises(BadInput, match="beyond the vocabulary"):
        child.judge(small_case(rows=((3000,),)), (CACHED,), "installed")


def place(subject):
    from conformance.subjects import place_of

    assert type(load(place_of(subject))) is type(subject)
    return place_of(subject)
