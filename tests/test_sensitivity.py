"""Faults planted in a cache are seen, or there is a reason; the table keeps what was measured before."""

import json

import pytest
from toolbox import small_case

from conformance.architectures.cells import kinds
from conformance.architectures.shrink import tiny_config
from conformance.architectures.sizes import Sizes
from conformance.build import Scenario
from conformance.errors import NotBuildable
from conformance.reporting import sensitivity as kept
from conformance.sensitivity import showing
from conformance.sensitivity.cells import FAULTS, Cell
from conformance.sensitivity.measuring import measure
from conformance.sensitivity.showing import BEGINS_A_CHUNK, NO_POSITIONS, one_case

ROWS = ((3, 4, 5, 6, 7, 8, 9, 10), (20, 21, 22, 23, 24, 25, 26, 27))


@pytest.mark.parametrize(("name", "kinds"), [("llama", ["full"]), ("mamba2", ["convolutional", "recurrent"])])
def test_planted_faults_are_seen_or_explained(name, kinds):
    cells = measure(name, cases=3, seed=1)
    assert [(cell.kind, cell.fault) for cell in cells] == [(kind, fault) for kind in kinds for fault in FAULTS]
    for cell in cells:
        assert (cell.seen == cell.cases >= 3) if cell.cases else cell.reason


def planted(name, fault, changed=(), **sizes):
    """What one case of a type shows of a fault, by cache kind: whether it was seen, or why it cannot be planted."""
    case = small_case(name, config=tiny_config(name, Sizes(**sizes)) | dict(changed), rows=ROWS, max_new_tokens=2)
    scenario = Scenario(case)
    seen, absent = one_case(scenario, kinds(scenario.config), seed=1)
    return {kind: said for (kind, planted), said in {**seen, **absent}.items() if planted == fault}


def test_a_shift_is_planted_only_where_some_layer_reads_positions():
    """Full layers of cohere2 have none: a model of nothing else cannot show a shift, one with a sliding layer must."""
    assert planted("cohere2", "position shifted", layer_plan=(1,)) == {"full": NO_POSITIONS}
    assert planted("cohere2", "position shifted", layer_plan=(0, 1)) == {"full": True, "sliding": True}


def test_a_model_that_reads_positions_and_does_not_show_a_shift_is_not_excused(monkeypatch):
    monkeypatch.setattr(showing, "shift", lambda _: "")
    assert planted("llama", "position shifted") == {"full": False}


def test_a_fault_with_which_the_forward_raises_is_seen(monkeypatch):
    """As where blocks are selected by position, and one past the last token begins a block that is not there."""

    def far_off(inputs):
        inputs["position_ids"] = inputs["position_ids"] + 10_000
        return ""

    monkeypatch.setattr(showing, "shift", far_off)
    assert planted("gpt2", "position shifted") == {"full": True}


@pytest.mark.parametrize("window", [2, 5])
def test_an_entry_is_lost_where_the_next_token_reads(window):
    assert planted("blt", "entry lost", window=window) == {"full": True}


@pytest.mark.parametrize(("chunk", "said"), [(4, BEGINS_A_CHUNK), (5, True)])
def test_nothing_is_planted_in_chunks_where_the_next_token_begins_one(chunk, said):
    assert planted("llama4_text", "entry lost", {"attention_chunk_size": chunk})["chunked"] == said


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
    text = (tmp_path / "sensitivity.json").read_text()
    assert json.loads(text)["cases"] == 10
    assert sum('"fault"' in line for line in text.splitlines()) == text.count('"fault"') == 2 * len(FAULTS)
    assert kept.unexplained({"c": [vars(cell("c", 0, reason="none"))]}) == []


def test_scales_at_which_a_case_was_not_seen_are_left_out():
    seeing, blind = cell("a", 10), cell("a", 9)
    seeing.by_scale, blind.by_scale = {"0.3": [5, 5], "0.4": [5, 5]}, {"0.3": [5, 5], "0.4": [4, 5], "0.1": [0, 2]}
    assert 0.4 in kept.scales_that_see([vars(seeing)])
    scales = kept.scales_that_see([vars(seeing), vars(blind)])
    assert 0.4 not in scales
    assert {0.3, 0.1} <= set(scales)  # two cases are too few to say anything
