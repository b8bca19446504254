"""Faults planted in a cache are seen, or there is a reason; the table keeps what was measured before."""

import json

import pytest

from conformance.errors import NotBuildable
from conformance.reporting import sensitivity as kept
from conformance.sensitivity.cells import FAULTS, Cell
from conformance.sensitivity.measuring import measure


@pytest.mark.parametrize(("name", "kinds"), [("llama", ["full"]), ("mamba2", ["convolutional", "recurrent"])])
def test_planted_faults_are_seen_or_explained(name, kinds):
    cells = measure(name, cases=3, seed=1)
    assert [(cell.kind, cell.fault) for cell in cells] == [(kind, fault) for kind in kinds for fault in FAULTS]
    for cell in cells:
        assert (cell.seen == cell.cases >= 3) if cell.cases else cell.reason


def test_the_same_seed_measures_the_same():
    assert measure("llama", cases=2, seed=4) == measure("llama", cases=2, seed=4)


def test_a_type_that_cannot_be_built_says_why():
    with pytest.raises(NotBuildable, match=r"^gemma4_assistant: "):
        measure("gemma4_assistant", cases=1, seed=1)


def cell(name, seen, cases=10, reason=""):
    return Cell(name, "full", FAULTS[0], cases=cases, seen=seen, reason=reason)


def test_the_table_keeps_other_rows_and_names_what_is_unexplained(tmp_path):
    rest = [Cell("a", "full", fault, reason="a reason") for fault in FAULTS[1:]]
    kept.write(tmp_path, [("a", [cell("a", 10), *rest])], 10)
    page = kept.write(tmp_path, [("b", [cell("b", 9), *rest])], 10)
    table = kept.read(tmp_path)
    assert sorted(table) == ["a", "b"]
    assert [entry["architecture"] for entry in kept.unexplained(table)] == ["b"]
    assert "| a | full | 100.0% of 10 | - (1) | - (1) | - (1) |" in page.read_text()
    assert json.loads((tmp_path / "sensitivity.json").read_text())["cases"] == 10
    assert kept.unexplained({"c": [vars(cell("c", 0, reason="none"))]}) == []


def test_scales_at_which_a_case_was_not_seen_are_left_out():
    seeing, blind = cell("a", 10), cell("a", 9)
    seeing.by_scale, blind.by_scale = {"0.3": [5, 5], "0.6": [5, 5]}, {"0.3": [5, 5], "0.6": [4, 5], "0.5": [0, 2]}
    assert 0.6 in kept.scales_that_see([vars(seeing)])
    scales = kept.scales_that_see([vars(seeing), vars(blind)])
    assert 0.6 not in scales
    assert {0.3, 0.5} <= set(scales)  # two cases are too few to say anything
