"""What programs are made of: copies of caches, tables for scripts, and one cache after another."""

import copy

import pytest
import torch
from toolbox import small_case
from zoo import planted
from zoo import rollback as broken

from conformance.failures import Failure
from conformance.judge import judge
from conformance.plainer import plainer
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_programs import Op, crop_events, reach_of, unfed
from conformance.programs import contents
from conformance.programs.copying import copied
from conformance.programs.given import given_against_recomputed
from conformance.programs.prepared import interpreter, run, steps_of, truths_of
from conformance.programs.truths import Unusable
from conformance.reporting.constants.rollback import Table
from conformance.runs import Runs
from conformance.signature import Key
from conformance.snapshots import changes
from conformance.subjects.installed import Installed

PREFILL, RECORD, FRESH = Op(op="prefill"), Op(op="record"), Op(op="fresh")
FEED, CROP = Op(op="feed", tokens=(5, 6)), Op(op="crop", count=1)


def case_of(architecture, *program, **plan):
    rows = ((3, 4, 5, 6), (7, 8, 9, 10))
    return small_case(architecture, rows=rows, family="rollback", plan=RollbackPlan(program=program, **plan))


@pytest.mark.parametrize("cache", ["default", "static"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "lfm2", "mamba", "bart:seq2seq"])
def test_a_copy_is_what_deepcopy_makes(architecture, cache):
    truths = truths_of(Runs(case_of(architecture, cache=cache, slack=8), Installed()))
    with torch.no_grad():
        filled = truths.of((((5, 6), (7, 8)),), (0, 1))[0].cache
    before = contents.everything(filled)
    made = copied(filled)
    assert not changes(contents.everything(copy.deepcopy(filled)), contents.everything(made))
    for tensor, _ in contents.visible(made).values():
        tensor.zero_()
    assert not changes(before, contents.everything(filled))


def test_tensors_that_share_storage_still_do_in_a_copy():
    whole = torch.arange(6.0)
    made = copied({"whole": whole, "part": whole[2:4]})
    made["whole"].zero_()
    assert made["part"].tolist() == [0, 0]
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]


def test_what_breaks_one_cache_is_followed_by_the_next():
    """An empty sliding window cannot be cropped in this release; the cache after it can, once it is filled."""
    program = (CROP, PREFILL, FEED, FRESH, RECORD, PREFILL, FEED, CROP)
    steps = steps_of(Runs(case_of("mistral", RECORD, *program), Installed()))
    assert [str(step.op) for step in steps] == ["record()", "crop(1)", *(str(op) for op in program[4:])]
    assert steps[1].crash.differences
    assert not any(step.broken for step in steps[2:])


def test_rows_that_are_left_are_judged_after_a_feed_too():
    """What was right before is asked of the rows that were there, or nothing could be blamed on losing some."""
    steps = steps_of(Runs(case_of("lfm2", PREFILL, FEED, Op(op="select", rows=(1,))), Installed()))
    assert steps[-1].crash.differences or steps[-1].wrong.differences


def test_tokens_that_raise_end_one_cache_only(monkeypatch):
    found = interpreter(Runs(case_of("llama", PREFILL), Installed()))
    right = found.truths.of

    def of(groups, sources):
        if len(groups) > 1:
            raise Unusable(IndexError("too long"))
        return right(groups, sources)

    monkeypatch.setattr(found.truths, "of", of)
    steps = run(found, (PREFILL, FEED, FEED, CROP, FRESH, PREFILL, FEED))
    assert [step.op for step in steps] == [PREFILL, FEED, PREFILL, FEED]
    nothing = interpreter(Runs(case_of("llama", PREFILL), Installed()))
    monkeypatch.setattr(nothing.truths, "of", lambda groups, sources: of((groups, groups), sources))
    with pytest.raises(Unusable):
        run(nothing, (PREFILL, FEED))


def test_a_long_program_shrinks_to_what_fails():
    long = (RECORD, PREFILL, FEED, FEED, Op(op="reorder", rows=(1, 0)), FEED, Op(op="repeat", count=2), FEED, CROP)
    check = "batch-operations-move-every-state"
    case = case_of("lfm2", *long)
    difference = judge(case, (check,), Installed()).verdicts[check].differences[0]
    failure = Failure(Key.of(check, difference), case, difference)
    assert len(plainer(failure, Installed(), deadline=float("inf")).case.plan.program) <= 4


def test_a_program_that_can_spare_no_operation_may_spare_one_for_another():
    """Two crops take back more than a window recorded, since the first leaves no surplus; so does one, unrecorded."""
    case = case_of("mistral", RECORD, PREFILL, FEED, CROP, CROP)
    difference = judge(case, ("crop-round-trip",), Installed()).verdicts["crop-round-trip"].differences[0]
    failure = Failure(Key.of("crop-round-trip", difference), case, difference)
    assert len(plainer(failure, Installed(), deadline=float("inf")).case.plan.program) <= 4


def test_states_that_are_gone_are_far():
    wanted = {"keys": (torch.ones(2, 1, 3), True)}
    for got in ({}, {"keys": (torch.ones(0), True)}, {"keys": (torch.ones(1, 1, 3), True)}):
        assert contents.apart(got, wanted) == (float("inf"), "keys")
    assert contents.apart({"keys": (torch.ones(2, 4, 3), True)}, wanted) == (0.0, "")


def test_a_plain_cache_is_no_encoder_decoder_cache():
    verdicts = judge(case_of("bart:seq2seq", PREFILL, FEED, cache="plain"), CHECK, Installed()).verdicts
    assert verdicts[CHECK[0]].status == "fail"


def test_a_given_cache_that_is_no_worse_than_the_own_one_is_not_to_blame():
    case = case_of("llama", PREFILL, FEED, cache="quantized")
    with broken.quantised_loses_the_first_token():
        assert judge(case, CHECK, Installed()).verdicts[CHECK[0]].status == "fail"
    with planted.continued_positions_are_one_off():
        assert judge(case, CHECK, Installed()).verdicts[CHECK[0]].status == "blocked-by"
        found = given_against_recomputed(Runs(case, Installed()))
    assert found.blocked_by == "cached-matches-recomputed"
    assert found.differences


CHECK = ("given-cache-matches-recomputed",)


@pytest.mark.parametrize(
    ("architecture", "cache"), [("llama", "quantized"), ("llama", "default"), ("t5gemma", "plain")]
)
def test_other_given_caches_are_right_or_refused(architecture, cache):
    status = (
        judge(case_of(architecture, PREFILL, FEED, FEED, cache=cache), CHECK, Installed()).verdicts[CHECK[0]].status
    )
    assert status == {"quantized": "pass", "default": "not-applicable", "plain": "allowed"}[cache]


def test_a_table_holds_what_the_last_cache_sees():
    moved = (PREFILL, FEED, Op(op="select", rows=(1,)), CROP)
    table = Table((PREFILL, FRESH, *moved), rows=2, start=4, vocabulary=40)
    assert table.calls == [
        ("feed", [0, 1], 0, []),
        ("feed", [0, 1], 4, [[6, 7], [7, 8]]),
        ("batch_select_indices", [1]),
        ("crop", -1),
        ("feed", [1], 5, [[1]]),
    ]
    assert table.left == [("feed", [1], 0, []), ("feed", [1], 4, [[7]]), ("feed", [1], 5, [[1]])]


@pytest.mark.parametrize(("keeps", "rows"), [(False, [1]), (True, [1, 1])])
def test_a_table_has_the_batch_that_follows_a_reset(keeps, rows):
    table = Table((PREFILL, Op(op="reset"), Op(rows=(1,))), rows=2, start=4, vocabulary=40, keeps=keeps)
    assert table.calls[1:3] == [("reset",), ("feed", rows, 0, [])]


@pytest.mark.parametrize(("cache", "size"), [("default", 3), ("static", 2), ("early", 2), ("quantized", 3)])
def test_a_cache_that_a_reset_leaves_nothing_in_takes_another_batch(cache, size):
    program = (PREFILL, Op(op="reset"), Op(rows=(1, 0, 1)))
    found = interpreter(Runs(case_of("llama", *program, cache=cache), Installed()))
    steps = run(found, program)
    assert found.machine.sources == [1, 0, 1][:size]
    assert not any(step.broken for step in steps)


def test_caches_are_counted_apart():
    program = (PREFILL, FEED, FRESH, PREFILL, FEED, FEED, Op(op="crop", count=2))
    assert reach_of(program) == 4
    assert "crop: at a boundary" in crop_events(program, 4, [])
    assert reach_of(()) == 0
    assert (*program[4:6], Op(op="crop", count=0)) == (*program[4:6], *unfed(program[6:], 2))
    plainer = RollbackPlan(program=program).plainer()
    assert {one.program for one in plainer} >= {(), program[:2], program[3:], (*program[:2], *program[3:])}
    assert "static" in {one.cache for one in RollbackPlan(cache="early").plainer()}
