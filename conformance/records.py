"""Records: one NDJSON shard per worker, one line per case; whatever is reported is computed from them.

A line is written when its case is judged, so a worker that dies loses at most the case it was on, and that
one stands in `<worker>.current.json`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from conformance.case import Case
from conformance.files import write_atomically
from conformance.judge import Judgement


def digest(case: Case) -> str:
    """A short name for a case: equal for equal cases."""
    return hashlib.sha256(case.to_json().encode()).hexdigest()[:16]


@dataclass
class Recorder:
    """Writes one worker's shard under `folder`/records."""

    folder: Path
    worker: str

    def __post_init__(self) -> None:
        self._records = self.folder / "records"
        self._records.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = (self._records / f"{self.worker}.ndjson").open("a", encoding="utf-8", buffering=1)
        self._current = self._records / f"{self.worker}.current.json"

    def start(self, item: str, case: Case) -> None:
        """The case that is about to run, for whoever finds the worker dead."""
        write_atomically(self._current, json.dumps({"item": item, "case": case.to_dict()}))

    def case(self, item: str, judgement: Judgement, counted: bool, source: str) -> None:
        """One judged case; `counted` is false for the minimal first one and for stored cases."""
        verdicts = {name: verdict.label for name, verdict in judgement.verdicts.items()}
        reasons = {
            n: v.reason
            for n, v in judgement.verdicts.items()
            if v.status in ("not-applicable", "tie", "allowed", "known")
        }
        self.line(
            "case",
            item=item,
            family=judgement.case.family,
            architecture=judgement.case.model.architecture,
            case=digest(judgement.case),
            counted=counted,
            source=source,
            verdicts=verdicts,
            reasons=reasons,
            events=sorted(judgement.events),
            figures=dict(judgement.figures),
            **({"failing": judgement.case.to_dict()} if judgement.failures() else {}),
        )

    def item(self, item: str, **facts: Any) -> None:
        """One finished (or deselected) item."""
        self.line("item", item=item, **facts)

    def line(self, kind: str, **facts: Any) -> None:
        """Any other record."""
        self._file.write(json.dumps({"record": kind, **facts}, sort_keys=True) + "\n")

    def close(self) -> None:
        """End the shard: the worker did not die."""
        self._file.close()
        self._current.unlink(missing_ok=True)


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Every record of every shard, shards in order; a line cut short by a dying worker is left out."""
    for shard in sorted((folder / "records").glob("*.ndjson")):
        for line in shard.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def orphans(folder: Path) -> list[dict[str, Any]]:
    """The cases on which workers died; a file that says nothing is of a worker that had no case yet."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((folder / "records").glob("*.current.json"))]
    return [found for text in texts if isinstance(found := _parsed(text), dict) and {"item", "case"} <= set(found)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def count_verdicts(records: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """check → verdict → count over the counted cases."""
    counts: dict[str, Counter[str]] = {}
    for record in records:
        if record["record"] == "case" and record["counted"]:
            for name, label in record["verdicts"].items():
                counts.setdefault(name, Counter())[label] += 1
    return {name: dict(sorted(counter.items())) for name, counter in sorted(counts.items())}


def figures(records: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """name → count, mean, least and most of what the counted cases measured."""
    values: dict[str, list[float]] = {}
    for record in records:
        if record["record"] == "case" and record["counted"]:
            for name, value in record.get("figures", {}).items():
                values.setdefault(name, []).append(value)
    return {
        name: {"cases": len(v), "mean": round(sum(v) / len(v), 4), "least": min(v), "most": max(v)}
        for name, v in sorted(values.items())
    }
