"""Findings: failures after shrinking, one folder each, shared by all workers of a run through the disk."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.case import Case, case_from_dict
from conformance.causes import in_other_circumstances, of_several_types
from conformance.files import write_atomically
from conformance.signature import Key, Signature, traits

PART_OF = "part-of"  # the file in a finding's folder that names the finding which explains it


@dataclass(frozen=True)
class Finding:
    """One fault as found: its signature, its smallest case, and what was expected and got there.

    first_seen: random, corpus or database; confirmed: whether its script reproduced it in a fresh process
    (None: not tried); kind: difference or not-repeatable.
    """

    signature: Signature
    case: Case
    expected: str
    got: str
    where: str = ""
    first_seen: str = "random"
    kind: str = "difference"
    confirmed: bool | None = None
    subject: str = "installed"
    notes: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.signature.id

    def to_dict(self) -> dict[str, Any]:
        """The finding as `finding.json` holds it."""
        return {**asdict(self), "id": self.id, "signature": asdict(self.signature), "case": self.case.to_dict()}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Finding:
        """The finding that `to_dict` gave."""
        parts = {name: value for name, value in document.items() if name != "id"}
        parts["signature"] = Signature.from_dict(parts["signature"])
        parts["case"] = case_from_dict(parts["case"], document.get("id", "finding"))
        parts["notes"] = tuple(parts.get("notes", ()))
        return cls(**parts)


class Findings:
    """The findings of a run, under `folder`/findings. Workers see each other's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "findings"

    def __iter__(self) -> Iterator[Finding]:
        for path in sorted(self.folder.glob("*/finding.json")):
            yield Finding.from_dict(json.loads(path.read_text(encoding="utf-8")))

    def __len__(self) -> int:
        return len(list(self.folder.glob("*/finding.json")))

    def that_could_explain(self, key: Key, case: Case) -> list[Finding]:
        """The findings whose key and needs a failure on this case has; of any type."""
        return [finding for finding in self if finding.signature.could_explain(key, case)]

    def add(self, finding: Finding) -> bool:
        """Store a finding, unless its signature is known with a case as small. Says whether it was stored."""
        place = self.folder / finding.id
        place.mkdir(parents=True, exist_ok=True)
        with locked(place):
            return self._add(place, finding)

    def _add(self, place: Path, finding: Finding) -> bool:
        known = place / "finding.json"
        if known.exists():
            old = Finding.from_dict(json.loads(known.read_text(encoding="utf-8")))
            if size_of(old.case) <= size_of(finding.case):
                return False
        write_atomically(place / "case.json", json.dumps(finding.case.to_dict(), indent=1, sort_keys=True) + "\n")
        write_atomically(known, json.dumps(finding.to_dict(), indent=1, sort_keys=True) + "\n")
        return True

    def mark_as_part(self, finding: Finding, whole: Finding) -> None:
        """Write down that another finding explains this one: `merge` drops it, once nobody works on it any more."""
        write_atomically(self.folder / finding.id / PART_OF, whole.id)

    def _drop_parts(self) -> None:
        """Drop what is marked as part of another, wherever that is part of a third, unless each is of the other."""
        files = sorted(self.folder.glob(f"*/{PART_OF}"))
        marks = {path.parent.name: path.read_text(encoding="utf-8") for path in files}
        for name in marks:
            whole, seen = marks[name], {name}
            while (further := marks.get(whole)) is not None and further not in seen:
                seen.add(whole)
                whole = further
            if (self.folder / whole / "finding.json").exists():
                shutil.rmtree(self.folder / name)

    def merge(self) -> None:
        """Drop each finding that another one accounts for: marked so, or the same but with less that it needs. And of
        the findings that have one cause on several types, all but the smallest, which names the types; in several
        circumstances, all but the one that needs the least, which names what else they were met with.
        """
        self._drop_parts()
        found = list(self)
        for finding in found:
            if any(other.signature.accounts_for(finding.signature) for other in found):
                shutil.rmtree(self.folder / finding.id)
        for alike in of_several_types(list(self)):
            smallest, *others = sorted(alike, key=lambda finding: size_of(finding.case))
            types = sorted({other.case.model_name for other in others})
            self._keep_one(smallest, others, f"the same on {', '.join(types)}")
        for first, *others in in_other_circumstances(list(self)):
            needs = {need for other in others for need in other.signature.needs} - {*first.signature.needs}
            elsewhere = {other.case.model_name for other in others} - {first.case.model_name}
            with_more = f"met with {', '.join(sorted(needs))} as well" if needs else ""
            on_more = f"the same on {', '.join(sorted(elsewhere))}" if elsewhere else ""
            self._keep_one(first, others, "; ".join(filter(None, (with_more, on_more))))

    def _keep_one(self, kept: Finding, others: Iterable[Finding], note: str) -> None:
        """Drop findings of which another one tells, with a note of what they show beside it."""
        if note:
            self.update(replace(kept, notes=(*kept.notes, note)))
        for other in others:
            shutil.rmtree(self.folder / other.id)

    def update(self, finding: Finding) -> None:
        """Replace a stored finding, its case unchanged."""
        write_atomically(
            self.folder / finding.id / "finding.json", json.dumps(finding.to_dict(), indent=1, sort_keys=True) + "\n"
        )


@contextmanager
def locked(folder: Path, patience: float = 10.0) -> Iterator[None]:
    """Keep other workers out of a folder; after `patience` seconds its lock is that of a dead one."""
    lock, end = folder / ".lock", time.time() + patience
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.time() > end:
                lock.unlink(missing_ok=True)
            time.sleep(0.01)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def size_of(case: Case) -> tuple[int, int, int, str]:
    """What smaller means: fewer settings that are not the plainest, fewer tokens, then a shorter text."""
    text = case.to_json()
    return (len(traits(case)), sum(map(len, case.prompt.rows)) + case.settings.max_new_tokens, len(text), text)
