"""`conformance replay`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from conformance.case import Case, read_case
from conformance.cli import app
from conformance.errors import BadInput
from conformance.files import read_bounded
from conformance.reporting.columns import say
from conformance.subjects import BUILT_IN
from conformance.verdicts import Status, Verdict

LARGEST_FINDING = 1024 * 1024  # bytes
LOST = "process"  # the field of a difference where a process was lost
ORDER: tuple[Status, ...] = ("fail", "known", "blocked-by", "tie", "allowed", "pass", "not-applicable")


@app.command()
def replay(
    source: Annotated[
        Path, typer.Argument(help="A case file, or the folder of a finding.", metavar="CASE.json|FINDING-DIR")
    ],
    show: Annotated[bool, typer.Option("--show", help="Show both outcomes side by side.")] = False,
    checks: Annotated[str | None, typer.Option(help="Checks to replay (default: all of the case's family).")] = None,
    subject: Annotated[str | None, typer.Option(help="What is tested (default: as found, else installed).")] = None,
) -> None:
    """Run one stored case again; exits 1 when a check fails, 0 when none does, 4 when none applies here."""
    try:
        path = source / "case.json" if source.is_dir() else source
        there = path.exists()
    except OSError:  # a name that no file system takes
        there = False
    if not there:
        raise BadInput(f"{source} is neither a case file nor the folder of a finding (one that holds case.json)")
    case = read_case(path)
    sys.exit(replay_case(case, checks, subject or found_with(source) or "installed", show, Console()))


def found_with(source: Path) -> str | None:
    """The subject of the finding in a folder, or None. BadInput for one of somebody's own: its code would run."""
    try:
        subject = str(json.loads(read_bounded(source / "finding.json", LARGEST_FINDING))["subject"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if subject not in BUILT_IN:
        raise BadInput(f"the finding is of a subject whose code would run; if you trust it, add --subject {subject}")
    return subject


def replay_case(case: Case, checks: str | None, subject: str, show: bool, console: Console) -> int:
    """Judge one case and print its verdicts; returns the exit code."""
    from conformance.replaying import replay as judge_again
    from conformance.reporting.side_by_side import print_side_by_side
    from conformance.runs import Runs
    from conformance.subjects import load

    result, tell = judge_again(case, checks, subject), say(console)
    tell(f"{case}")
    if result.judgement is None:
        tell(f"NOT APPLICABLE: {result.reason}")
        return 4
    for line in verdict_lines(result.judgement.verdicts):
        tell(line)
    if show and any(
        difference.field == LOST for v in result.judgement.verdicts.values() for difference in v.differences
    ):
        tell("nothing to show: the process that judged this case was lost on it, and so would this one be")
    elif show:
        print_side_by_side(console, result.judgement, result.judgement.runs or Runs(case, load(subject)))
    return result.exit_code


def verdict_lines(verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """One line a check: failures first, what does not apply last."""
    for name, verdict in sorted(verdicts.items(), key=lambda item: ORDER.index(item[1].status)):
        said = "; ".join(str(difference) for difference in verdict.differences[:3]) or verdict.reason
        yield f"  {verdict.label:<16} {name}{': ' if said else ''}{said}"
