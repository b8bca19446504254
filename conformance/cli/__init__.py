"""`conformance run | replay | list | explain | doctor`: thin commands over pytest and the library."""

from __future__ import annotations

import sys

import typer

from conformance.errors import BadInput

app = typer.Typer(
    name="conformance",
    help="Property-based conformance tests for transformers generation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Entry point: bad input is one line and exit code 2."""
    from conformance.cli import doctor, explain, listing, replay, run  # noqa: F401  (each registers its command)

    try:
        app()
    except BadInput as error:
        print(f"conformance: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
