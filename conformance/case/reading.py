"""Cases read from JSON, which may be a stranger's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conformance.case.case import DEFAULT_FAMILY, SCHEMA_VERSION, Case
from conformance.case.plan import known_plans
from conformance.errors import CaseRefused, unknown
from conformance.files import read_bounded

LARGEST_CASE_FILE = 256 * 1024  # bytes


def parse_case(text: str, source: str = "case") -> Case:
    """A case from JSON text. Raises CaseRefused with one line naming the field that is wrong."""
    try:
        document = json.loads(text, object_pairs_hook=_without_repetition)
    except CaseRefused as error:
        raise CaseRefused(f"{source}: {error}") from None
    except (ValueError, RecursionError) as error:  # ValueError: also a number of too many digits
        raise CaseRefused(f"{source} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise CaseRefused(f"{source} holds a {type(document).__name__}, not a case (a JSON object)")
    return case_from_dict(document, source)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, which may name each of its keys once: readers differ in which of two they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise CaseRefused(f"the key {twice!r:.80} is there more than once")
    return found


def case_from_dict(document: dict[str, Any], source: str = "case") -> Case:
    """A case from a parsed document; see `parse_case`."""
    version = document.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int:
        raise CaseRefused(f"{source}: schema_version is {version!r:.40}, must be a whole number")
    if version > SCHEMA_VERSION:
        raise CaseRefused(
            f"{source}: schema_version is {version}, written by a newer release; this one reads {SCHEMA_VERSION}"
        )
    family = document.get("family", DEFAULT_FAMILY)
    if isinstance(family, str) and family not in known_plans():
        raise CaseRefused(f"{source}: {unknown('family', family, known_plans())}")
    try:
        return Case.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "case"
        raise CaseRefused(f"{source}: {field}: {first['msg']}") from None


def read_case(path: Path) -> Case:
    """The case in a file. Raises CaseRefused when it cannot be read, is too long or is not valid."""
    try:
        text = read_bounded(path, LARGEST_CASE_FILE)
    except (OSError, ValueError) as error:
        raise CaseRefused(f"cannot read a case of {path}: {error}") from None
    return parse_case(text, str(path))
