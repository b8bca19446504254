"""The command line as a user calls it: in a folder of its own, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent
ENTRY = [sys.executable, "-c", "from conformance.cli import main; main()"]
PYTEST = [sys.executable, "-m", "pytest"]


def environment() -> dict[str, str]:
    """That of a user who has the zoo on the path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {
        **inherited,
        "PYTHONPATH": str(TESTS),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }


def call(
    cwd: Path, *arguments: object, entry: list[str] = ENTRY, limit: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run `conformance` with arguments and wait for it."""
    words = [*entry, *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=limit, check=False)


def start(cwd: Path, *arguments: object) -> subprocess.Popen[str]:
    """Run `conformance` in a process group of its own, as a terminal does, and do not wait."""
    words = [*ENTRY, *map(str, arguments)]
    return subprocess.Popen(
        words,
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def summary(report: Path) -> dict[str, Any]:
    """The summary that a run left."""
    return json.loads((report / "summary.json").read_text())


def verdicts(report: Path) -> list[tuple[Any, ...]]:
    """(item, case, counted, verdicts) of every judged case, in an order that no scheduling changes."""
    lines = [line for shard in (report / "records").glob("*.ndjson") for line in shard.read_text().splitlines()]
    cases = [record for record in map(json.loads, lines) if record["record"] == "case"]
    return sorted((r["item"], r["case"], r["counted"], json.dumps(r["verdicts"], sort_keys=True)) for r in cases)
