"""What a run shows while it runs and at its end."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from conformance.reporting import progress
from conformance.reporting.columns import columns, counted, first_few
from conformance.reporting.progress import Progress
from conformance.reporting.terminal import items_left_out, print_summary, verdict_lines

LONGEST = "assisted-survives-special-tokens-on-meta-defaults"
SUMMARY: dict[str, Any] = {
    "checks": ["repeatable", "streamer-sees-the-sequence", "never-drawn", LONGEST],
    "verdicts": {
        LONGEST: {"pass": 1234, "fail": 1, "tie": 2, "blocked-by one": 4, "blocked-by two": 1, "allowed": 3},
        "repeatable": {"pass": 9, "not-applicable": 3},
        "streamer-sees-the-sequence": {"not-applicable": 12},
    },
    "items": {"ran": 26, "deselected: budget": 1246, "with findings": 3, "broken": 0},
    "findings": [
        {"id": "repeatable-llama-1", "confirmed": False, "in_short": "on llama", "expected": "[1]", "got": "[2]"}
    ],
    "not_reached": [f"cached: path {number}" for number in range(40)],
    "below_floor": [],
    "only_allowed": {},
    "events": {},
    "cells": {"reachable": 8, "reached": 8, "reached_often": 8, "often": 20, "fewer": {}},
    "subject": "installed",
    "broken": [],
    "died": [],
    "cases": 1,
    "seconds": 61.2,
    "cases_per_s": 0.02,
    "share_of_time_in_model_code": 0.5,
    "share_of_ties": 0.0,
    "seed": 7,
    "exit_code": 1,
    "exit_reason": "1 finding",
}


def printed(width: int = 80, **other: Any) -> list[str]:
    file = io.StringIO()
    print_summary(Console(file=file, width=width), {**SUMMARY, **other}, "there")
    return file.getvalue().splitlines()


def test_what_was_only_ever_allowed_is_said() -> None:
    assert not [line for line in printed() if line.startswith("never passed")]
    (said,) = [line for line in printed(only_allowed={"repeatable": 12}) if line.startswith("never passed")]
    assert said == "never passed nor failed, 1 in all: repeatable (allowed in 12 cases)"


def test_the_cells_with_few_cases_are_said() -> None:
    assert not [line for line in printed() if line.startswith("fewer than")]
    fewer = {"llama × full": 19, "lfm2 × convolutional": 0}
    (said,) = [line for line in printed(120, cells={**SUMMARY["cells"], "fewer": fewer}) if "fewer than" in line]
    assert said == "fewer than 20 cases, 2 of 8 architecture × cache kind: llama × full (19); lfm2 × convolutional (0)"


def test_a_finding_is_replayed_on_the_subject_of_the_run() -> None:
    for subject, told in (("installed", ""), ("reference", " --subject reference")):
        assert f"    conformance replay there/findings/repeatable-llama-1{told}" in printed(subject=subject)


def test_the_table_fits_and_has_whole_names_and_heads() -> None:
    head, *rows = list(verdict_lines(SUMMARY, 80))
    assert head.split() == ["check", "pass", "fail", "tie", "block", "allow", "n/a"]
    assert [row.split() for row in rows[:2]] == [
        [LONGEST, "1234", "1", "2", "5", "3"],
        ["repeatable", "9", "3"],
    ]
    assert rows[2:] == [
        "(block: blocked-by, allow: allowed, n/a: not-applicable)",
        "2 checks applied to no case and are not in the table",
    ]
    assert max(map(len, [head, *rows])) <= 80
    assert all(line == line.rstrip() for line in [head, *rows])


def test_where_no_check_applied_there_is_no_table() -> None:
    idle = {**SUMMARY, "checks": ["repeatable"], "verdicts": {}}
    assert list(verdict_lines(idle, 80)) == ["1 check applied to no case and is not in the table"]


def test_the_end_says_what_was_left_out_in_few_words() -> None:
    lines = printed()
    assert "26 of 1272 items ran, 1246 left out by the budget" in lines
    (reached,) = (line for line in lines if line.startswith("not reached"))
    paths = "cached: path 0; cached: path 1; cached: path 2"
    assert reached == f"not reached, 40 in all: {paths}; and 37 more in there/summary.json"
    assert lines[-2].startswith("1 case in 61 s")
    assert lines[-1] == "exit 1: 1 finding"
    assert lines.index("repeatable-llama-1  [NOT confirmed]") > lines.index(next(x for x in lines if LONGEST in x))


def test_where_every_item_ran_nothing_is_said_of_items() -> None:
    assert list(items_left_out({**SUMMARY, "items": {"ran": 4, "with findings": 1, "broken": 0}})) == []


def test_items_that_broke_or_died_were_planned_too() -> None:
    items = {"ran": 4, "deselected: max-findings": 2, "with findings": 1, "broken": 1}
    (line,) = items_left_out({**SUMMARY, "items": items, "died": ["r0001-cached-llama"]})
    assert line == "4 of 8 items ran, 2 left out after as many findings as asked for"


def test_progress_speaks_at_once_and_while_it_confirms(monkeypatch: Any) -> None:
    file = io.StringIO()
    monkeypatch.setattr(progress.time, "time", lambda: 100.0)
    shown = Progress(Console(file=file, width=80), processes=2)
    shown.pytest_sessionstart()
    assert file.getvalue() == "loading torch, transformers and the checks in 2 processes: up to a minute\n"
    assert shown.line() == "0 s  no item has ended yet"
    shown.pytest_conformance_confirming(1, 17)
    shown.pytest_conformance_confirming(2, 17)  # too soon for another line
    assert file.getvalue().count("\n") == 2
    monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", -1.0)
    shown.pytest_conformance_confirming(3, 17)
    assert file.getvalue().splitlines()[-1] == "0 s  0 cases  0 findings  confirming 3 of 17"


def test_columns_stand_under_each_other_without_trailing_blanks() -> None:
    assert columns([("name", "what"), ("a", "long text"), ("bcdefg", "")]) == [
        "name    what",
        "a       long text",
        "bcdefg",
    ]
    assert columns([("name", "n"), ("a", "10")], gap=1, numbers=True) == ["name  n", "a    10"]


def test_words_for_numbers() -> None:
    assert [counted(0, "case"), counted(1, "case"), counted(2, "process", "processes")] == [
        *("0 cases", "1 case", "2 processes"),
    ]
    assert first_few(["a", "b", "c"]) == "a; b; c"
    assert first_few(["a", "b", "c", "d"]) == "a; b; c; and 1 more"
