"""Pages of findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up_findings import finding_of

from conformance.case import Settings, read_case
from conformance.findings import Finding
from conformance.reporting.page import case_lines, render_page, write_finding

VERSIONS = {"transformers": "5.24.0", "torch": "2.13.0", "accelerate": "1.15.0", "pytest": "8"}


def test_a_page_says_all_that_is_known() -> None:
    finding = finding_of("groups", "jamba", needs=("padding",), cache=("full", "recurrent"))
    page = render_page(finding, VERSIONS)
    assert page.startswith("# several-tokens-match-one-by-one on jamba: logits (values)\n")
    for text in (
        "The rule: Tokens fed several at a time onto a filled cache give the logits of feeding them one by one.",
        "In short: on jamba, with padding: logits (values).",
        "expected  1.5 within 1e-04 at index 3",
        "got       2.5",
        f"Reproduce with, from the folder of the report:\n\n    conformance replay findings/{finding.id}",
        "    python repro.py\n\nThe script names the first value that is off; the one above may be another",
        "| Cache | full, recurrent |",
        "| Needs | padding |",
        "| Found with | transformers 5.24.0, torch 2.13.0, accelerate 1.15.0 |",
        "| Confirmed | not tried |",
        "row 1     [6, 7, 8]",
        "cached    continuation=[5, 6, 7, 8], groups=[3, 1]",
    ):
        assert text in page, text
    assert max(map(len, page.splitlines())) <= 120


def test_a_page_leaves_out_what_there_is_nothing_to_say_about() -> None:
    finding = finding_of("repeatable")
    page = render_page(replace(finding, confirmed=True), VERSIONS)
    assert "Raised in" not in page
    assert "Notes" not in page
    assert "| Confirmed | yes, in a fresh process |" in page
    assert "| Needs | repeatable |" in page


def test_a_crash_is_said_once_and_no_other_value_is_spoken_of() -> None:
    page = render_page(finding_of("groups", kind="crash", field="crash", raised_in="KeyError in a.b"), VERSIONS)
    assert page.startswith("# several-tokens-match-one-by-one on llama: crash\n")
    assert "In short: on llama, with groups: raises KeyError in a.b." in page
    assert "    python repro.py\n\n| | |\n" in page
    replayed = render_page(finding_of("groups", subject="reference"), VERSIONS)
    assert "The script names" not in replayed


def test_a_case_in_lines_shows_only_what_is_not_plain() -> None:
    lines = dict(case_lines(finding_of("repeatable", settings=Settings(max_new_tokens=2, do_sample=True)).case))
    assert lines["generate"] == "max_new_tokens=2, do_sample=True"
    assert "purity" not in lines


def test_write_finding_leaves_three_files(tmp_path: Path) -> None:
    finding = finding_of("groups")
    write_finding(tmp_path, finding)
    place = tmp_path / "findings" / finding.id
    assert sorted(path.name for path in place.iterdir()) == ["case.json", "finding.md", "repro.py"]
    assert read_case(place / "case.json") == finding.case


def test_where_there_is_no_config_there_is_no_script(tmp_path: Path) -> None:
    finding = finding_of("groups")
    config = {**finding.case.model.config, "no_such_attribute": 1}
    finding = replace(finding, case=finding.case.replace(model=finding.case.model.replace(config=config)))
    write_finding(tmp_path, finding)
    place = tmp_path / "findings" / finding.id
    assert not (place / "repro.py").exists()
    assert "no_such_attribute" in (place / "repro.txt").read_text(encoding="utf-8")


def test_a_script_that_cannot_be_written_loses_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Finding) -> str:
        raise IndexError("tuple index out of range")

    finding = finding_of("groups")
    monkeypatch.setattr("conformance.reporting.page.render_script", broken)
    write_finding(tmp_path, finding)
    place = tmp_path / "findings" / finding.id
    told = "no script: writing it failed: IndexError('tuple index out of range')\n"
    assert (place / "repro.txt").read_text(encoding="utf-8") == told
    assert (place / "finding.md").exists()
