"""`conformance explain`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli import app
from conformance.errors import BadInput
from conformance.files import read_bounded
from conformance.globs import FAMILY, select_checks
from conformance.listing import families_of_checks

LARGEST_PAGE = 1024 * 1024  # bytes


@app.command()
def explain(
    what: Annotated[
        str, typer.Argument(help="A check, a family or the folder of a finding.", metavar="CHECK|family:NAME|FINDING")
    ],
) -> None:
    """The rule of a check and why it must hold, those of a whole family, or a finding in full."""
    folder = Path(what)
    if what.startswith(FAMILY):
        typer.echo("\n\n\n".join(check_page(name) for name in select_checks(what, families_of_checks())))
        return
    if _exists(folder / "finding.md"):
        try:
            typer.echo(read_bounded(folder / "finding.md", LARGEST_PAGE))
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read the page of a finding: {error}") from None
    elif _exists(folder / "finding.json"):  # of a run that was killed before it wrote the page
        typer.echo(page_of(folder))
    elif _exists(folder):
        raise BadInput(f"{folder} is not the folder of a finding: it holds no finding.md and no finding.json")
    elif len(folder.parts) > 1:
        raise BadInput(f"there is no folder {folder}; explain takes the folder of a finding, or the name of a check")
    else:
        typer.echo(check_page(what))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file system takes
        return False


def page_of(folder: Path) -> str:
    """The page of a finding, from what `finding.json` says. With what it was found is not told there."""
    from conformance.findings import Finding
    from conformance.reporting.page import render_page

    try:
        document = json.loads(read_bounded(folder / "finding.json", LARGEST_PAGE))
        return render_page(Finding.from_dict(document), {})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"{folder / 'finding.json'} is no finding: {error!r:.200}") from None


def check_page(name: str) -> str:
    """A check's document with its place on the ladder."""
    from conformance import registry

    found = registry.get(name)
    below = ", ".join(registry.below(name)) or "none: it is the lowest rung or stands by itself"
    return f"{found.name} (family {found.family})\n\n{inspect.cleandoc(found.document)}\n\nRungs below: {below}"
