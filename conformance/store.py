"""Cases worth running again: the corpus that ships with the project, and what failed here before.

Failing cases are kept as case JSON under a key of our own (check and architecture) in a Hypothesis database;
Hypothesis' own keys change with the working directory and the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase

from conformance import registry
from conformance.case import Case, parse_case
from conformance.errors import CaseRefused

CORPUS = Path(__file__).parent / "corpus"


class Store:
    """The stored cases; an empty one when the run is fresh."""

    def __init__(self, folder: Path | None, subject: str = "installed") -> None:
        self._database = DirectoryBasedExampleDatabase(folder) if folder else None
        self._subject = subject

    def cases(self, family: str, architecture: str) -> Iterator[tuple[str, Case]]:
        """(source, case) of everything stored for a family on a type: corpus first, then database."""
        if self._database is None:
            return
        for case in corpus():
            if case.family == family and case.model.architecture == architecture:
                yield "corpus", case
        seen: set[str] = set()
        for check in (c.name for c in registry.checks().values() if c.family == family):
            for value in sorted(self._database.fetch(self._key(check, architecture))):
                text = value.decode("utf-8", "replace")
                if text not in seen and (stored := _readable(text)) is not None:
                    seen.add(text)
                    yield "database", stored

    def save(self, check: str, case: Case) -> None:
        """Keep a failing case."""
        if self._database is not None:
            self._database.save(self._key(check, case.model.architecture), case.to_json().encode())

    def healed(self, check: str, case: Case) -> None:
        """Drop a case that fails no longer."""
        if self._database is not None:
            self._database.delete(self._key(check, case.model.architecture), case.to_json().encode())

    def _key(self, check: str, architecture: str) -> bytes:
        return f"conformance/1/{self._subject}/{check}/{architecture}".encode()


def corpus() -> Iterator[Case]:
    """The minimal cases of real faults that ship with the project."""
    for path in sorted(CORPUS.glob("*.json")):
        yield parse_case(path.read_text(encoding="utf-8"), path.name)


def _readable(text: str) -> Case | None:
    try:
        return parse_case(text, "database")
    except CaseRefused:  # written by another release
        return None
