"""`conformance report`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli import app
from conformance.errors import BadInput

reports = typer.Typer(help="Reports that are kept.", no_args_is_help=True)
app.add_typer(reports, name="report")


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
