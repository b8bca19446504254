"""Runs that end before their end: nothing that was found is lost, and what happened is said in a line."""

import errno
import io
import json

import pytest
from rich.console import Console
from toolbox import explored, small_case
from typer.testing import CliRunner

from conformance.cli import app, explain, report, session
from conformance.errors import BadInput
from conformance.files import write_atomically
from conformance.findings import Finding
from conformance.options import Options
from conformance.selection import OPTIONS, RECORDS, give_up, make_options, report_folder
from conformance.signature import Signature
from conformance.subjects.reference import Reference

ASKED = Options(checks=("repeatable",), architectures=("llama",))


def lines_of(say):
    """What is printed by a function of a console, and what it returns."""
    file = io.StringIO()
    returned = say(Console(file=file, width=200))
    return returned, file.getvalue().splitlines()


def test_of_two_runs_that_start_together_one_has_the_folder(tmp_path):
    report_folder(str(tmp_path))
    with pytest.raises(BadInput, match="holds an earlier run"):
        report_folder(str(tmp_path))


def test_a_run_without_a_record_leaves_the_folder_to_the_next(tmp_path):
    for _ in range(2):
        options = make_options(checks="repeatable", architectures="llama", examples=1, report=str(tmp_path))
        give_up(options.report)
    assert list(tmp_path.iterdir()) == []


def test_what_has_a_record_is_never_given_up(tmp_path):
    explored(tmp_path, Reference(), family="purity", examples=1)
    (tmp_path / OPTIONS).write_text(ASKED.to_json())
    give_up(str(tmp_path))
    assert (tmp_path / OPTIONS).exists()
    assert list((tmp_path / RECORDS).iterdir())


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (pytest.ExitCode.INTERRUPTED, 130, "interrupted before the first case was judged"),
        (pytest.ExitCode.USAGE_ERROR, 2, "before anything was summed up"),
        (pytest.ExitCode.INTERNAL_ERROR, 3, "before anything was summed up"),
    ],
)
def test_a_session_that_sums_up_nothing_says_why(status, code, said):
    returned, lines = lines_of(lambda console: session._ended_early(status, session.KeepSummary(), console))
    assert returned == code
    assert said in lines[0]


def run_that_raises(error, tmp_path, monkeypatch):
    (tmp_path / "findings" / "some-finding").mkdir(parents=True)
    (tmp_path / "findings" / "some-finding" / "finding.json").touch()
    monkeypatch.setattr(session.pytest, "main", lambda *_, **__: (_ for _ in ()).throw(error))
    monkeypatch.setattr(session.interruption, "watch", lambda: None)
    return session.run_session(ASKED.replace(report=str(tmp_path)), 0)


def test_a_full_disk_is_told_with_what_was_found(tmp_path, monkeypatch, capsys):
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "summary.json"))
    assert run_that_raises(error, tmp_path, monkeypatch) == 3
    said = capsys.readouterr().out
    assert "the report cannot be written, No space left on device" in said
    assert "some-finding" in said


def test_another_error_of_the_system_is_no_full_disk(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="Interrupted"):
        run_that_raises(OSError(errno.EINTR, "Interrupted"), tmp_path, monkeypatch)


def test_what_cannot_be_written_leaves_no_draft(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_atomically(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def ended(folder):
    assert report.ended.__doc__  # importing it makes it a command
    return CliRunner().invoke(app, ["report", "ended", str(folder)], catch_exceptions=True)


def test_a_run_that_was_killed_is_summed_up(tmp_path):
    explored(tmp_path, Reference(), family="purity", examples=2)
    (tmp_path / OPTIONS).write_text(ASKED.to_json())
    current = {"item": "purity-llama-1", "case": small_case().to_dict()}
    (tmp_path / RECORDS / "gw0.current.json").write_text(json.dumps(current))
    done = ended(tmp_path)
    assert done.exit_code == 3, done.output
    assert "purity-llama-1 (its worker died)" in done.stdout
    assert json.loads((tmp_path / "summary.json").read_text())["cases"] == 2


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "is not the folder of a run"),
        ({OPTIONS: "[]"}, "is not the folder of a run"),
        ({OPTIONS: ASKED.to_json()}, "holds no record of a case"),
    ],
)
def test_what_is_no_run_cannot_be_summed_up(files, said, tmp_path):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = ended(tmp_path)
    assert isinstance(done.exception, BadInput)
    assert said in str(done.exception)


def finding():
    signature = Signature(
        check="repeatable", scope="llama", kind="values", field="logits", raised_in="", cache=("full",), needs=()
    )
    return Finding(signature, small_case(family="purity"), "1.5", "2.5")


def test_a_finding_without_its_page_is_explained(tmp_path):
    (tmp_path / "finding.json").write_text(json.dumps(finding().to_dict()))
    assert "got       2.5" in explain.page_of(tmp_path)
    done = CliRunner().invoke(app, ["explain", str(tmp_path)])
    assert (done.exit_code, "got       2.5" in done.stdout) == (0, True)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"signature": 1}'])
def test_a_finding_that_is_none_is_refused(text, tmp_path):
    (tmp_path / "finding.json").write_text(text)
    with pytest.raises(BadInput, match=r"finding\.json is no finding"):
        explain.page_of(tmp_path)


def test_a_folder_that_is_not_there_is_not_taken_for_a_check():
    done = CliRunner().invoke(app, ["explain", "reports/nowhere"])
    assert "there is no folder reports/nowhere" in str(done.exception)
