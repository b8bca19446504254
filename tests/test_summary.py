"""From records to figures and exit codes."""

import json

import pytest
from toolbox import CHECKS_OF, small_case

from conformance import registry
from conformance.findings import Finding, Findings
from conformance.judge import Judgement
from conformance.options import Options
from conformance.records import Recorder
from conformance.reporting.summary import (
    FEWEST_COMPARED,
    MOST_ALLOWED_ALONE,
    MOST_TIES,
    compared_within_a_bound,
    exit_code,
    share_of_ties,
    summarise,
)
from conformance.signature import Signature
from conformance.verdicts import Verdict

PURITY = CHECKS_OF["purity"]


def options(folder, checks=PURITY):
    return Options(checks=tuple(checks), architectures=("llama",), report=str(folder))


def fill(folder, count, *, events=(), verdict=("pass",), item="r0001-purity-llama", close=True, family="purity"):
    recorder, verdicts = Recorder(folder, item), dict.fromkeys(CHECKS_OF[family], Verdict(*verdict))
    for _ in range(count):
        made = Judgement(small_case(family=family), verdicts, frozenset(events))
        recorder.case(item, made, counted=True, source="random")
    recorder.item(item, outcome="ran", cases=count, findings=[], seconds=2.0, model_seconds=1.5)
    if close:
        recorder.close()
    return recorder


def a_finding(folder):
    signature = Signature("repeatable", "changed", "logits", "", ("full",), (), "any")
    Findings(folder).add(Finding(signature, small_case(family="purity"), "1", "2"))


def summary(folder, **given):
    return summarise(options(folder), seconds=10.0, **given)


@pytest.mark.parametrize(
    ("verdicts", "alone", "code"),
    [
        ([("allowed", MOST_ALLOWED_ALONE + 1), ("not-applicable", 50)], MOST_ALLOWED_ALONE + 1, 4),
        ([("allowed", MOST_ALLOWED_ALONE + 1), ("blocked-by", 5)], MOST_ALLOWED_ALONE + 1, 4),
        ([("allowed", MOST_ALLOWED_ALONE)], MOST_ALLOWED_ALONE, 0),  # may be chance
        ([("allowed", MOST_ALLOWED_ALONE + 1), ("pass", 1)], None, 0),
        ([("allowed", MOST_ALLOWED_ALONE + 1), ("tie", 1)], None, 0),
        ([("pass", 3), ("not-applicable", 40)], None, 0),
    ],
)
def test_a_check_that_only_ever_allows_has_shown_nothing(verdicts, alone, code, folder):
    for number, (status, count) in enumerate(verdicts):
        reason = "a rung" if status == "blocked-by" else ""
        fill(folder, count, verdict=(status, reason), item=f"r{number}-purity-llama")
    made = summary(folder)
    assert made["only_allowed"] == ({} if alone is None else dict.fromkeys(sorted(PURITY), alone))
    assert made["exit_code"] == code
    assert ("never a pass or a failure, only what is allowed" in made["exit_reason"]) == (code == 4)


DOCUMENTED = {
    *("versions", "seed", "cases", "verdicts", "items", "events", "not_reached", "cases_per_s"),
    *("share_of_time_in_model_code", "findings"),
}


def test_the_summary_is_written_and_has_its_documented_keys(folder):
    fill(folder, 3, events=["rows: one"])
    made = summary(folder)
    assert json.loads((folder / "summary.json").read_text()) == made
    assert made.keys() >= DOCUMENTED
    assert made["cases"] == 3
    assert made["verdicts"] == {name: {"pass": 3} for name in PURITY}
    assert made["events"] == {"purity: rows: one": 3}
    assert made["cases_per_s"] == 0.3
    assert made["share_of_time_in_model_code"] == 0.75
    assert made["items"]["ran"] == 1


def test_a_finding_in_the_summary_has_its_documented_keys(folder):
    fill(folder, 3)
    a_finding(folder)
    (found,) = summary(folder)["findings"]
    assert {"id", "check", "architecture", "model", "signature", "confirmed", "first_seen"} <= found.keys()
    assert (found["check"], found["architecture"], found["first_seen"], found["confirmed"]) == (
        "repeatable",
        "llama",
        "random",
        None,
    )


ENDS = {
    "interrupted": 130,
    "broken": 3,
    "died": 3,
    "findings": 1,
    "share_of_ties": 4,
    "core_not_run": 4,
    "below_floor": 4,
    "only_allowed": 4,
}
NOTHING = {
    "interrupted": False,
    "broken": [],
    "died": [],
    "findings": [],
    "share_of_ties": 0.0,
    "compared_within_a_bound": FEWEST_COMPARED,
    "core_not_run": {},
    "below_floor": [],
    "only_allowed": {},
    "cases": 5,
    "checks": ["repeatable"],
    "not_reached": [],
}
HAPPENED = {
    "interrupted": True,
    "broken": [{"item": "item"}],
    "died": ["item"],
    "findings": [{}],
    "share_of_ties": 0.5,
    "core_not_run": {"llama": "KeyError"},
    "below_floor": ["few"],
    "only_allowed": {"repeatable": 99},
}


@pytest.mark.parametrize("first", range(len(ENDS)))
def test_the_gravest_end_decides(first):
    happened = {name: HAPPENED[name] for name in list(ENDS)[first:]}
    assert exit_code({**NOTHING, **happened})[0] == list(ENDS.values())[first]


def test_nothing_found_is_zero_and_nothing_run_is_not():
    assert exit_code(NOTHING)[0] == 0
    assert exit_code({**NOTHING, "cases": 0}) == (4, "not one case was run")
    vacuous = {**NOTHING, "not_reached": ["repeatable: compared nothing"]}
    assert exit_code(vacuous) == (4, "not one check compared anything")


def test_a_finding_ends_with_one(folder):
    fill(folder, 3)
    a_finding(folder)
    assert summary(folder)["exit_code"] == 1
    assert summary(folder, interrupted=True)["exit_code"] == 130


def test_a_type_of_the_default_selection_that_does_not_run_ends_with_four(folder):
    recorder = fill(folder, 3, close=False)
    facts = {"outcome": "not-applicable", "cases": 0, "findings": []}
    recorder.item("r0001-purity-kosmos-2", architecture="kosmos-2", reason="no such package", **facts)
    assert summary(folder)["core_not_run"] == {}
    recorder.item("r0001-purity-gpt2", architecture="gpt2", reason="KeyError: 'h'", **facts)
    recorder.close()
    made = summary(folder)
    assert (made["exit_code"], made["core_not_run"]) == (4, {"gpt2": "KeyError: 'h'"})
    assert made["exit_reason"] == "gpt2 is selected by default and does not run: KeyError: 'h'"


def test_a_broken_item_ends_with_three(folder):
    recorder = fill(folder, 3, close=False)
    recorder.line("broke", item="r0001-purity-llama", error="ZeroDivisionError: ")
    recorder.close()
    a_finding(folder)
    made = summary(folder)
    assert made["exit_code"] == 3
    assert made["items"]["broken"] == 1


def test_a_dead_worker_ends_with_three_and_names_its_item(folder):
    recorder = fill(folder, 3, close=False)
    recorder.start("r0001-purity-llama", small_case(family="purity"))
    made = summary(folder)
    assert (made["exit_code"], made["died"]) == (3, ["r0001-purity-llama"])
    assert made["exit_reason"] == "the harness broke on 1 item: r0001-purity-llama (its worker died)"
    assert summary(folder, interrupted=True)["died"] == []
    recorder.close()


@pytest.mark.parametrize(("share", "code"), [(0.0, 0), (MOST_TIES, 0), (MOST_TIES + 0.001, 4)])
def test_too_many_ties_end_with_four(share, code):
    assert exit_code({**NOTHING, "share_of_ties": share})[0] == code


def test_one_tie_among_few_says_nothing():
    assert exit_code({**NOTHING, "share_of_ties": 0.5, "compared_within_a_bound": FEWEST_COMPARED - 1})[0] == 0


def test_ties_are_a_share_of_what_compared_something():
    bounded, bitwise = "cached-matches-recomputed", "repeatable"
    assert share_of_ties({bounded: {"tie": 2, "pass": 198, "not-applicable": 900}}) == MOST_TIES
    assert share_of_ties({bounded: {"tie": 100, "blocked-by b": 100}}) == 0.5
    assert share_of_ties({bounded: {"tie": 2, "pass": 198}, bitwise: {"pass": 5000}}) == MOST_TIES
    assert share_of_ties({bounded: {"tie": 1, "pass": 9}}) == 0.1
    assert compared_within_a_bound({bounded: {"tie": 1, "pass": 9, "not-applicable": 5}, bitwise: {"pass": 1}}) == 10
    assert share_of_ties({}) == 0.0


@pytest.mark.parametrize(("cases", "below"), [(registry.FLOOR_CASES - 1, False), (registry.FLOOR_CASES, True)])
def test_floors_are_in_force_from_a_number_of_cases_on(cases, below, folder):
    fill(folder, cases, events=["rows: several", "stop: eos middle", "sampling: on"])
    made = summary(folder)
    assert bool(made["below_floor"]) == below
    assert made["exit_code"] == (4 if below else 0)
    assert not below or made["below_floor"] == [f"purity: rows: padded in 0.0% of {cases} cases, floor 10.0%"]


def test_a_share_at_its_floor_is_enough(folder):
    few = registry.FLOOR_CASES // 10
    reached = ["rows: several", "stop: eos middle", "sampling: on"]
    fill(folder, few, events=[*reached, "rows: padded"])
    fill(folder, registry.FLOOR_CASES - few, events=reached, item="r0002-purity-llama")
    assert summary(folder)["below_floor"] == []


PROMISE = "deferral: nothing forbids it"


@pytest.mark.parametrize(
    ("events", "cases", "below"),
    [
        ([PROMISE], registry.PROMISED_CASES, True),
        ([PROMISE], registry.PROMISED_CASES - 1, False),
        ([PROMISE, "deferred"], registry.PROMISED_CASES, False),
        ([], 2 * registry.PROMISED_CASES, False),
    ],
    ids=["never", "too few to say", "met", "never promised"],
)
def test_a_promised_event_that_is_never_met_is_not_enough(events, cases, below, folder):
    fill(folder, cases, events=events, family="stopping")
    made = summarise(options(folder, ["deferred-stop-matches-immediate"]), seconds=1.0)
    assert made["exit_code"] == (4 if below else 0)
    assert not below or made["below_floor"] == [f"stopping: deferred in none of {cases} cases with {PROMISE!r}"]


def test_what_was_not_reached_is_listed_for_the_selected_families_only(folder):
    family = registry.families()["purity"]
    left = ["stop: eos first", "stop: eos last"]
    fill(folder, 1, events=[*family.floors, *(event for event in family.reachable if event not in left)])
    assert summary(folder)["not_reached"] == [f"purity: {event}" for event in left]


def test_items_left_out_are_counted_with_their_reason(folder):
    recorder = fill(folder, 1, close=False)
    for number in (2, 3):
        recorder.item(f"r000{number}-purity-llama", outcome="deselected", reason="budget", cases=0, findings=[])
    recorder.close()
    assert summary(folder)["items"] == {"ran": 1, "deselected: budget": 2, "with findings": 0, "broken": 0}


def test_reasons_are_counted_and_those_of_ties_are_not_spelt_out(folder):
    fill(folder, 2, verdict=("not-applicable", "one row"))
    fill(folder, 1, verdict=("tie", "1e-6"), item="r0002-purity-llama")
    assert summary(folder)["reasons"]["repeatable"] == {"not-applicable: one row": 2, "tie": 1}
