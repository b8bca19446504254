"""Programs on a cache say something of a user's subject only where the cache is that subject's."""

import pytest
from toolbox import CHECKS_OF, explored, small_case
from transformers import DynamicCache

from conformance.judge import judge
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_programs import Op
from conformance.programs.own_caches import CALLERS, LEFT, NO_METHOD
from conformance.records import read
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

ROUND_TRIP, NONE = "crop-round-trip", "not-applicable"
# Of these one runs the release alone; the others decode with the subject, whatever caches it has.
OTHERWISE = ("beams-leave-the-encoding-alone", "guidance-is-of-each-row-alone", "guided-beams-score-their-sequences")
PROGRAM = (Op(op="record"), Op(op="prefill"), Op(op="feed", tokens=(5, 6)), Op(op="crop", count=1), Op(op="reset"))


class Garbage:
    """Decodes nothing at all, and has no cache."""

    name = "garbage"

    def generate(self, *_):
        return 42


class Misspelt(Garbage):
    def new_cahce(self, model, _):
        return DynamicCache(config=model.config)


class Off(DynamicCache):
    def crop(self, count):
        super().crop(count + 1)


class Giving(Installed):
    """Has caches of its own, made by `make`."""

    name = "giving"

    def __init__(self, make):
        self.make = make

    def new_cache(self, model, _):
        return self.make(model)


def verdicts(subject, architecture="llama", checks=CHECKS_OF["rollback"], **plan):
    case = small_case(
        architecture, rows=((3, 4, 5), (6, 7, 8)), family="rollback", plan=RollbackPlan(program=PROGRAM, **plan)
    )
    return judge(case, checks, subject).verdicts


@pytest.mark.parametrize("plan", [{}, {"cache": "static"}, {"cache": "quantized"}, {"beams": 2}, {"draft": 2}])
@pytest.mark.parametrize("subject", [Garbage(), Misspelt()], ids=["garbage", "misspelt"])
def test_nothing_passes_for_a_subject_without_a_cache(subject, plan):
    for name, verdict in verdicts(subject, **plan).items():
        wanted = verdict.reason if name in OTHERWISE else NO_METHOD
        assert (verdict.status, verdict.reason) == (NONE, wanted), name


def test_a_run_that_looks_at_no_cache_of_the_subjects_compares_nothing(folder):
    search = explored(folder, Garbage(), family="rollback", examples=20)
    statuses = {s for r in read(folder) if r["record"] == "case" for s in r["verdicts"].values()}
    assert (statuses, search.failures) == ({NONE}, [])


def test_a_cache_of_the_subjects_is_judged_and_no_other():
    sound = Giving(lambda model: DynamicCache(config=model.config))
    assert verdicts(sound)[ROUND_TRIP].status == "pass"
    assert verdicts(Giving(lambda model: Off(config=model.config)))[ROUND_TRIP].status == "fail"
    given = verdicts(sound, cache="quantized")[ROUND_TRIP]
    left = verdicts(Giving(lambda _: None))[ROUND_TRIP]
    assert [(one.status, one.reason) for one in (given, left)] == [(NONE, CALLERS), (NONE, LEFT)]


def test_what_a_subject_raises_for_a_cache_is_told():
    def broken(_):
        raise KeyError("no cache today")

    found = verdicts(Giving(broken))[ROUND_TRIP]
    assert found.status == NONE
    assert "no cache today" in found.reason


@pytest.mark.parametrize("subject", [Installed(), Reference()], ids=["installed", "reference"])
def test_the_subjects_that_come_with_us_are_judged_as_before(subject):
    assert verdicts(subject)[ROUND_TRIP].status == "pass"
    assert verdicts(subject, beams=2)["beams-follow-their-scores"].status == "pass"
    alone = verdicts(subject, "bart:seq2seq", ["beams-leave-the-encoding-alone"], beams=2)
    assert next(iter(alone.values())).status != NONE
