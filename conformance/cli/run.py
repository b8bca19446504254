"""`conformance run`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformance.cli import app
from conformance.errors import BadInput
from conformance.globs import joined
from conformance.options import PROFILES
from conformance.selection import give_up, make_options

HELP = {
    "checks": "Checks to run: globs or family:NAME, comma-separated (default: all that the profile runs).",
    "architectures": "Architectures to draw: comma-separated globs over every type of the installed release.",
    "subject": "What is tested: installed, reference, or module:object of your own.",
    "examples": "Counted cases per item, one round: the reproducible mode.",
    "budget": "Seconds to go on for, round after round.",
    "processes": "Worker processes: a number, or auto; 0 runs in this process.",
    "seed": "Seed of the run.",
    "profile": "pr (fixed seed) or nightly (random seed, and the checks that take long).",
    "fresh": "No corpus, no database, no known issues: random draws only.",
    "max_findings": "Start no further item after this many findings.",
    "report": "Folder for what the run leaves (default: reports/<time>).",
}


@app.command()
def run(
    checks: Annotated[list[str] | None, typer.Option(help=HELP["checks"])] = None,
    architectures: Annotated[list[str] | None, typer.Option(help=HELP["architectures"])] = None,
    subject: Annotated[str, typer.Option(help=HELP["subject"])] = "installed",
    examples: Annotated[int | None, typer.Option(help=HELP["examples"])] = None,
    budget: Annotated[float | None, typer.Option(help=HELP["budget"])] = None,
    processes: Annotated[str, typer.Option("-n", "--processes", help=HELP["processes"])] = "auto",
    seed: Annotated[int | None, typer.Option(help=HELP["seed"])] = None,
    profile: Annotated[str, typer.Option(help=HELP["profile"])] = "pr",
    fresh: Annotated[bool, typer.Option("--fresh", help=HELP["fresh"])] = False,
    max_findings: Annotated[int | None, typer.Option(help=HELP["max_findings"])] = None,
    report: Annotated[str | None, typer.Option(help=HELP["report"])] = None,
) -> None:
    """Draw random tiny models, generate, compare, shrink; leaves a report and exits 0, 1, 2, 3, 4 or 130."""
    if profile not in PROFILES:
        raise BadInput(f"unknown profile {profile!r}; valid: {', '.join(PROFILES)}")
    workers = worker_count(processes)
    options = make_options(
        checks=joined(checks),
        architectures=joined(architectures),
        subject=subject,
        examples=examples,
        budget=budget,
        seed=seed,
        profile=profile,
        fresh=fresh,
        max_findings=max_findings,
        report=report,
        workers=max(1, workers),
    )
    try:
        from conformance.cli.session import run_session

        code = run_session(options, workers)
    except KeyboardInterrupt:  # before there was a session that sums up
        give_up(options.report or ".")
        raise
    sys.exit(code)


def worker_count(processes: str) -> int:
    """The number of worker processes asked for; BadInput for anything but a number or auto."""
    import os

    if processes == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (processes.isascii() and processes.isdigit()) or int(processes) > 256:
        raise BadInput(f"-n is {processes!r}, must be auto or a number from 0 to 256")
    return int(processes)
