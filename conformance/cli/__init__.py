"""`conformance run | replay | list | explain | doctor`: thin commands over pytest and the library."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from conformance import __version__
from conformance.errors import BadInput, HarnessBroke

app = typer.Typer(
    name="conformance",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"conformance {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Property-based conformance tests for transformers generation."""


def main() -> None:
    """Entry point: bad input is one line and exit code 2, a harness that breaks exit code 3."""
    try:
        from conformance.cli import doctor, explain, listing, replay, report, run  # noqa: F401  (each registers itself)

        app()
    except KeyboardInterrupt:
        print("conformance: interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    except BadInput as error:
        print(f"conformance: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except HarnessBroke as error:
        print(f"conformance: the harness broke, which is a fault of its own: {error}", file=sys.stderr)  # noqa: T201
        traceback.print_exc()
        sys.exit(3)
