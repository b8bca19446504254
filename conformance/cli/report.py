"""`conformance report`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli import app
from conformance.errors import BadInput
from conformance.files import read_bounded
from conformance.options import Options
from conformance.selection import OPTIONS

LARGEST_OPTIONS = 1024 * 1024  # bytes
reports = typer.Typer(help="Reports that are kept, and those of runs that were killed.", no_args_is_help=True)
app.add_typer(reports, name="report")


@reports.command()
def ended(
    folder: Annotated[Path, typer.Argument(help="The report folder of a run that was killed.", metavar="FOLDER")],
) -> None:
    """Sum up a run that was ended from outside: its findings with their pages and scripts, and summary.json."""
    from rich.console import Console

    from conformance import upstream
    from conformance.reporting.finish import finish
    from conformance.reporting.terminal import print_summary

    options = _options_of(folder)
    upstream.quiet()
    shards = [path.stat().st_mtime for path in folder.glob("records/*.ndjson")]
    if not shards:
        raise BadInput(f"{folder} holds no record of a case, so there is nothing to sum up")
    began = (folder / OPTIONS).stat().st_mtime
    summary = finish(options, started=time.time() - (max(shards) - began), interrupted=False)
    print_summary(Console(), summary, str(folder))
    raise typer.Exit(summary["exit_code"])


def _options_of(folder: Path) -> Options:
    try:
        options = Options.from_json(read_bounded(folder / OPTIONS, LARGEST_OPTIONS))
        options.families()  # of checks that there are
        return options.replace(report=str(folder.absolute()))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{folder} is not the folder of a run, it holds no readable {OPTIONS}: {error!r:.200}") from None


@reports.command()
def sensitivity(
    architectures: Annotated[str, typer.Option(help="Architectures: comma-separated globs (default: all).")] = "*",
    cases: Annotated[int, typer.Option(help="Cases of each cell, at least.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 20_240,
    budget: Annotated[float | None, typer.Option(help="Seconds after which no further architecture is begun.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Only those that the kept table lacks.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the table is kept.")] = Path("reports/published"),
) -> None:
    """Plant faults in caches, see which reach the logits, and keep the table; other architectures' rows stay."""
    from conformance import upstream
    from conformance.architectures.capabilities import capabilities
    from conformance.globs import select_architectures
    from conformance.reporting import sensitivity as kept
    from conformance.sensitivity.measuring import measure

    if cases <= 0:
        raise BadInput(f"--cases is {cases}, must be more than zero")
    upstream.quiet()
    start, known = time.monotonic(), kept.read(folder)
    chosen = [name for name in select_architectures(architectures) if not (missing and name in known)]
    buildable = (name for name in chosen if capabilities(name).buildable)
    in_time = (name for name in buildable if budget is None or time.monotonic() - start < budget)
    page = kept.write(folder, ((name, measure(name, cases, seed)) for name in in_time), cases)
    table = kept.read(folder)
    typer.echo(f"{page}: {len(table)} architectures, {len(kept.unexplained(table))} cells below 99 % without a reason")
