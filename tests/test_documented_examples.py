"""The Python shown in the how-to pages does what the pages say."""

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from toolbox import small_case

from conformance.judge import judge
from conformance.placing.recipe import Recipe
from conformance.plans.placement import PlacementPlan
from conformance.subjects import load

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
OWN = (HOW_TO / "test-your-own-loop.md").read_text(encoding="utf-8")
PLACER = "## A loader or a planner of your own"


def blocks(text, language="python"):
    return [body for kind, body in re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", text) if kind == language]


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """The subjects that the page shows, each in the file that its first line names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for block in blocks(OWN):
        if named := re.match(r"# (\w+)\.py\n", block):
            Path(f"{named[1]}.py").write_text(block, encoding="utf-8")
            monkeypatch.delitem(sys.modules, named[1], raising=False)
    return load


def placed(subject, check, **plan):
    return judge(small_case(family="placement", plan=PlacementPlan(**plan)), [check], subject).verdicts[check]


def test_the_placer_that_is_shown_plans_wrong_places_right_and_audits(shown):
    placer = shown("my_placer:MyPlacer")
    assert placed(placer, "planned-map-keeps-within-memory", map="auto", budget=(60,)).status == "fail"
    given = {"map": "parts", "places": ("cpu", "disk")}
    for check in ("placed-matches-unplaced", "audit-accuses-nothing-right", "save-and-reload-keeps-ties"):
        assert placed(placer, check, **given).status == "pass", check
    assert placed(placer, "stranded-weight-is-named", stranded=0).status == "pass"
    offered = placed(placer, "placed-matches-unplaced", loader="disk_offload", places=("cpu",))
    assert (offered.status, offered.reason) == ("not-applicable", "checkpoints only")


def test_the_loop_and_the_cache_that_are_shown_have_their_faults(shown):
    rows = {"rows": ((25, 15, 1), (1, 1, 1)), "max_new_tokens": 3, "eos_at": ((1, 0),)}
    padded, loop = "padded-row-matches-alone", shown("my_loop:MyLoop")
    assert judge(small_case(**rows), [padded], loop).verdicts[padded].status == "fail"
    round_trip, program = "crop-round-trip", [{"op": "prefill"}, {"op": "feed", "tokens": [1, 1]}]
    case = small_case(family="rollback", plan={"program": [*program, {"op": "crop", "count": 1}]})
    assert judge(case, [round_trip], shown("my_cache:MySubject")).verdicts[round_trip].status == "fail"


def test_all_that_a_placing_subject_is_given_and_may_offer_is_told():
    section = OWN[OWN.index(PLACER) :].split("\n## ")[0]
    told = {*re.findall(r"`(\w+)[`(]", section)}
    assert {field.name for field in fields(Recipe)} <= told
    assert {"place", "planned", "audit", "load"} <= told


def test_the_page_on_placements_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page, seen = (HOW_TO / "check-a-placement.md").read_text(encoding="utf-8"), {}
    for block in blocks(page):
        exec(block, seen)
    assert capsys.readouterr().out == "".join(blocks(page, ""))
