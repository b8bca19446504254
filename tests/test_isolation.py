"""Cases judged in a process of their own."""

import tempfile
import time

import pytest
from toolbox import small_case
from zoo import subjects

from conformance.clock import MODEL_CODE
from conformance.errors import BadInput
from conformance.events import ASKED_AGAIN
from conformance.isolation import Child, _answer, one_by_one
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
    lost = child.judge(small_case(rows=((3, 4), (5,))), (CACHED,), "zoo.subjects:EndsTheProcess")
    assert [difference.kind for difference in lost.verdicts[CACHED].differences] == ["crash"]
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


PLACING, STRANDED = "planning-never-crashes", "nothing-stranded-on-meta"
LOADS, MATCHES = "checkpoint-loads-as-saved", "placed-matches-unplaced"
EVERY = (LOADS, MATCHES, PLACING, STRANDED)
ENDED, HANGS = (
    Difference("crash", "process", "a verdict", "the process ended with code -9"),
    Difference("hang", "process", "a verdict", "no verdict within 150 s"),
)


class Scripted(Child):
    """Gives an answer by the checks that are asked for together; writes down what was asked."""

    def __init__(self, answer):
        super().__init__()
        self.answer, self.asked = answer, []

    def _answer_to(self, case, checks, subject):  # noqa: ARG002
        self.asked.append(checks)
        answer = self.answer(checks, self.asked.count(checks))
        return answer or Judgement(case, dict.fromkeys(checks, Verdict("pass")))


def statuses(judgement):
    return {name: (verdict.status, verdict.reason) for name, verdict in judgement.verdicts.items()}


def test_a_process_that_is_killed_from_outside_is_no_finding():
    child = Scripted(lambda _, time: ENDED if time == 1 else None)
    judgement = child.judge(small_case(), (PLACING, MATCHES), "installed")
    assert statuses(judgement) == {PLACING: ("pass", ""), MATCHES: ("pass", "")}
    assert ASKED_AGAIN in judgement.events
    assert child.asked == [(PLACING, MATCHES)] * 2


@pytest.mark.parametrize(("loss", "times"), [(ENDED, 2), (HANGS, 1)])
def test_a_process_that_is_lost_on_placing_is_not_asked_for_what_stands_on_it(loss, times):
    child = Scripted(lambda checks, _: loss if PLACING in checks else None)
    found = statuses(child.judge(small_case(), EVERY, "installed"))
    blocked = ("blocked-by", PLACING)
    assert found == {LOADS: ("pass", ""), MATCHES: blocked, PLACING: ("fail", ""), STRANDED: blocked}
    assert child.asked == [*[EVERY] * times, *[(PLACING,)] * times, (LOADS,)]


def test_a_process_that_is_lost_on_everything_is_one_finding():
    child = Scripted(lambda *_: HANGS)
    found = statuses(child.judge(small_case(), EVERY, "installed"))
    assert found.pop(PLACING) == ("fail", "")
    assert set(found.values()) == {("blocked-by", PLACING)}
    assert len(child.asked) == 3


def test_a_process_that_is_lost_on_a_higher_rung_is_asked_for_each_below():
    child = Scripted(lambda checks, _: HANGS if MATCHES in checks else None)
    found = statuses(child.judge(small_case(), EVERY, "installed"))
    assert found == {LOADS: ("pass", ""), MATCHES: ("fail", ""), PLACING: ("pass", ""), STRANDED: ("pass", "")}


def test_what_nothing_takes_for_an_outcome_is_told_by_its_name():
    case = small_case()
    told = _answer({"case": case.to_json(), "checks": [CACHED], "subject": "zoo.subjects:Interrupts"})
    assert told == {
        "raised": "KeyboardInterrupt: of its own (in subjects.generate)",
        "in": "KeyboardInterrupt in subjects.generate",
    }


PROCESS = """
import json, sys, tempfile
print("ready", flush=True)
open(tempfile.mkdtemp() + "/file", "w").close()
for line in sys.stdin:
    if json.loads(line)["subject"] == "ends":
        sys.exit(7)
    print(json.dumps({"raised": "SystemExit: of its own", "in": "place"}), flush=True)
"""


@pytest.mark.parametrize(
    ("subject", "got"), [("ends", "the process ended with code 7"), ("raises", "SystemExit: of its own")]
)
def test_what_a_lost_process_leaves_is_removed(subject, got, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("conformance.isolation.SERVE", PROCESS)
    child = Child()
    assert child.judge(small_case(), (CACHED,), subject).verdicts[CACHED].differences[0].got == got
    child.close()
    assert list(tmp_path.iterdir()) == []


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
