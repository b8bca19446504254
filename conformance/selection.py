"""From what a user typed to the options of a run; everything wrong is said before anything runs."""

from __future__ import annotations

import math
import secrets
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from conformance.errors import BadInput
from conformance.files import write_atomically
from conformance.globs import select_architectures, select_checks
from conformance.listing import default_checks, families_of_checks
from conformance.options import PR_SEED, Options
from conformance.planning import pairs_of
from conformance.subjects import BUILT_IN, load

OPTIONS = "options.json"  # in the folder of the report, for who has to sum up a run that was killed
RECORDS = "records"  # the folder in that of the report: see `conformance.records`, which loads much more than this


def report_folder(name: str | None) -> str:
    """The folder to leave results in, made, tried out and claimed. BadInput when it cannot be written or is taken.

    Claimed by making `records` in it, which of two runs that start together only one can.
    """
    folder = Path(name) if name else Path("reports") / time.strftime("%Y%m%d-%H%M%S")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        _claim(folder)
    except OSError as error:
        raise BadInput(f"cannot write the report folder {folder}: {error.strerror or error}") from None
    return str(folder.absolute())  # a subject may change the working directory


def _claim(folder: Path) -> None:
    try:
        (folder / RECORDS).mkdir()
    except FileExistsError:
        raise BadInput(f"the report folder {folder} holds an earlier run; choose another with --report") from None


def give_up(report: str) -> None:
    """Let go of the folder of a run that ended before its first record."""
    with suppress(OSError):  # not empty, then: it holds something
        (Path(report) / RECORDS).rmdir()
        (Path(report) / OPTIONS).unlink(missing_ok=True)


def make_options(
    *,
    checks: str | None = None,
    architectures: str | None = None,
    subject: str = "installed",
    examples: int | None = None,
    budget: float | None = None,
    seed: int | None = None,
    profile: str = "pr",
    fresh: bool = False,
    max_findings: int | None = None,
    report: str | None = None,
    workers: int = 1,
) -> Options:
    """The options of a run. Raises BadInput; the report folder is made last."""
    if examples is not None and budget is not None:
        raise BadInput("give --examples or --budget, not both: one is reproducible, the other is timed")
    for name, value in (("--examples", examples), ("--budget", budget), ("--max-findings", max_findings)):
        if value is not None and not 0 < value < math.inf:
            raise BadInput(f"{name} is {value:g}, must be more than zero, and finite")
    if subject not in BUILT_IN:
        load(subject)  # one's own; the built-in ones import torch
    drawn_seed = PR_SEED if profile == "pr" else secrets.randbelow(2**31)
    options = Options(
        checks=select_checks(checks, families_of_checks()) if checks is not None else default_checks(profile),
        architectures=select_architectures(architectures),
        subject=subject,
        examples=examples,
        budget=budget,
        seed=drawn_seed if seed is None else seed,
        profile=profile,
        fresh=fresh,
        max_findings=max_findings,
        workers=workers,
        report=report_folder(report),
    )
    options = options.spread(len(pairs_of(options)))
    write_atomically(Path(options.report or ".") / OPTIONS, options.to_json() + "\n")
    return options
