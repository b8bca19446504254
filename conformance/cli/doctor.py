"""`conformance doctor`."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import typer

from conformance import upstream
from conformance.cli import app


@app.command()
def doctor() -> None:
    """Versions, devices, and what is not applicable on this machine, with the reasons."""
    for line in report():
        typer.echo(line)


def report() -> Iterator[str]:
    """The lines that `doctor` prints."""
    yield f"python       {platform.python_version()} on {platform.system()} {platform.machine()}"
    for name, version in upstream.versions().items():
        yield f"{name:<12} {version}"
    yield from _tested()
    yield from _devices()


def _tested() -> Iterator[str]:
    release = ".".join(map(str, upstream.release()))
    if upstream.release() > upstream.as_numbers(upstream.NEWEST_TESTED):
        yield f"note: transformers {release} is newer than the newest tested, {upstream.NEWEST_TESTED}"
    if upstream.release() < upstream.as_numbers(upstream.OLDEST):
        yield f"note: transformers {release} is older than the oldest supported, {upstream.OLDEST}"


def _devices() -> Iterator[str]:
    import torch

    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    yield f"devices      cpu{''.join(f', {name}' for name, there in present.items() if there)}"
    for name, there in present.items():
        if not there:
            yield f"not applicable here: {name} (no such device in this process)"
