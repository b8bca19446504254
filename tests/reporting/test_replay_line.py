"""The command that replays a finding, as it is told in several places."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from made_up_findings import finding_of

from conformance.reporting.page import render_page
from conformance.reporting.replay_line import _folder, path_of, replay_line
from conformance.reporting.repro import render_script

VERSIONS = {"transformers": "5.24.0", "torch": "2.13.0"}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module and a package of a user's that this process finds, as where it is the working one."""
    folder = tmp_path / "my loops"
    (folder / "kept_loops").mkdir(parents=True)
    (folder / "kept_loops" / "__init__.py").write_text("")
    (folder / "kept_loop.py").write_text("")
    monkeypatch.syspath_prepend(folder)
    _folder.cache_clear()
    return folder


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        ("installed", "conformance replay R/f"),
        ("reference", "conformance replay R/f --subject reference"),
        ("numpy.random:Loop", "conformance replay R/f --subject numpy.random:Loop"),
        ("nowhere_at_all:Loop", "conformance replay R/f --subject nowhere_at_all:Loop"),
    ],
)
def test_what_any_process_finds_needs_no_path(subject: str, line: str) -> None:
    assert replay_line("R/f", subject) == line


@pytest.mark.parametrize("subject", ["kept_loop:Loop", "kept_loops.deep.down:Loop"])
def test_what_only_this_process_finds_is_told_with_its_folder(subject: str, own: Path) -> None:
    words = shlex.split(replay_line("R/f", subject))
    assert words == [f"PYTHONPATH={own}", "conformance", "replay", "R/f", "--subject", subject]


def test_a_page_and_a_script_say_it_too(own: Path) -> None:
    finding = finding_of("groups", subject="kept_loop:Loop")
    page, path = render_page(finding, VERSIONS), f"PYTHONPATH='{own}' "
    assert f"\n    {path}conformance replay findings/{finding.id} --subject kept_loop:Loop\n" in page
    assert f"\n    {path}python repro.py\n" in page
    assert path_of("kept_loop:Loop") == path
    assert f"`kept_loop:Loop`, found with {path.strip()}" in " ".join(render_script(finding, VERSIONS).split())
    plain = render_page(finding_of("groups"), VERSIONS)
    assert f"\n    conformance replay findings/{finding_of('groups').id}\n" in plain
