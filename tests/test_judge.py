"""Judging a case: what breaks the harness, what is blocked and by whom, and whose fault it is."""

import pytest
from toolbox import CHECKS_OF, small_case
from zoo import subjects
from zoo.loop import Decoder

from conformance.checks import purity
from conformance.failures import Failure, same_failure
from conformance.findings import size_of
from conformance.judge import HarnessBroke, Verdicts, judge
from conformance.runs import Runs
from conformance.signature import Key
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

CACHED, PADDED = "cached-matches-recomputed", "padded-row-matches-alone"


def test_a_check_that_raises_is_the_harness_broken_and_never_a_verdict(monkeypatch):
    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr(purity, "watched", broken)
    with pytest.raises(HarnessBroke, match=r"the check repeatable raised ZeroDivisionError\(\) on"):
        judge(small_case(family="purity"), ["repeatable"], Installed())


def test_an_interrupt_is_nobodys_failure():
    class Interrupted(Installed):
        def generate(self, *_, **__):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(small_case(), [CACHED], Interrupted())


def test_a_type_that_cannot_be_built_is_not_applicable_with_the_reason(monkeypatch):
    from conformance.build import Scenario
    from conformance.errors import NotBuildable

    def refuse(_):
        raise NotBuildable("llama: no")

    monkeypatch.setattr(Scenario, "_bare_model", refuse)
    judgement = judge(small_case(), CHECKS_OF["cached"], Installed())
    assert {(v.status, v.reason) for v in judgement.verdicts.values()} == {
        ("not-applicable", "not buildable: llama: no")
    }


class DropsAndSwaps(subjects.DropsOldest):
    def cache(self, cache):
        super().cache(cache)
        subjects.SwapsRows.cache(self, cache)


def test_a_fault_of_the_cache_blocks_the_rungs_above():
    case = small_case(rows=((3, 4, 5), (6, 7, 8)), max_new_tokens=6, plan={"continuation": (1, 2, 3), "groups": (3,)})
    verdicts = judge(case, CHECKS_OF["cached"], DropsAndSwaps()).verdicts
    assert verdicts[CACHED].status == "fail"
    assert verdicts[PADDED].label == f"blocked-by {CACHED}"
    assert verdicts["several-tokens-match-one-by-one"].status == "pass"


def test_a_crash_is_blocked_only_by_a_crash():
    class WrongAlone(subjects.CrashesOnBatches):
        def generate(self, model, call):
            output = super().generate(model, call)
            output.sequences[:, -1] += 1
            return output

    verdicts = judge(small_case(rows=((3, 4), (5, 6))), [CACHED, PADDED], WrongAlone()).verdicts
    assert {name: verdict.status for name, verdict in verdicts.items()} == {CACHED: "fail", PADDED: "fail"}


def test_what_the_installed_release_fails_too_is_not_another_subjects_fault():
    from zoo import planted

    case = small_case(rows=((3, 4), (5, 6)))
    with planted.static_layer_refuses():
        mine = judge(case, ["static-matches-dynamic"], Decoder()).verdicts["static-matches-dynamic"]
        installed = judge(case, ["static-matches-dynamic"], Installed()).verdicts["static-matches-dynamic"]
    assert installed.status == "fail"
    assert mine.label == "blocked-by installed static-matches-dynamic"


def test_where_only_the_installed_release_is_wrong_the_other_of_the_pair_is_not_blamed(monkeypatch):
    def raises(*_):
        raise RuntimeError("not today")

    pair = "reference-matches-installed"
    monkeypatch.setattr(Installed, "generate", raises)
    verdicts = judge(small_case(), [pair], Reference()).verdicts
    assert verdicts[pair].label == f"blocked-by installed {CACHED}"
    assert judge(small_case(), [pair], Installed()).verdicts[pair].label == f"blocked-by {CACHED}"


def test_a_verdict_is_made_once():
    verdicts = Verdicts(Runs(small_case(), Installed()))
    assert verdicts.of(CACHED) is verdicts.of(CACHED)


def test_the_same_failure_is_told_from_another_one():
    case = small_case(rows=((3, 4, 5),), max_new_tokens=4)
    key = Key(CACHED, "values", "logits", "")
    found = same_failure(key, case, subjects.DropsOldest())
    assert isinstance(found, Failure)
    assert same_failure(key, case, subjects.StopsEarly()) is None
    assert (
        same_failure(key, case.replace(model=case.model.replace(architecture="none-such")), subjects.DropsOldest())
        is None
    )
    assert size_of(case) > size_of(small_case(rows=((3,),)))
