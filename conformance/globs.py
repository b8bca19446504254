"""Names chosen by comma-separated globs."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence

from conformance.architectures import catalogue
from conformance.errors import unknown

FAMILY = "family:"  # before the name of a family: all of its checks


def joined(given: Sequence[str] | None) -> str | None:
    """What an option says that may be given several times: all of it; None where it was not given."""
    return ",".join(given) if given else None


def select(patterns: str | None, names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names that any of the comma-separated globs matches; BadInput for a glob that matches none."""
    names = tuple(names)
    chosen: set[str] = set()
    for pattern in (part.strip() for part in ("*" if patterns is None else patterns).split(",")):
        matched = fnmatch.filter(names, pattern)
        if not matched:
            raise unknown(what, pattern, names)
        chosen.update(matched)
    return tuple(name for name in names if name in chosen)


def select_checks(patterns: str, families: Mapping[str, str]) -> tuple[str, ...]:
    """The checks that a glob matches by their name, or by `family:` and that of their family; check → family given."""
    chosen = select(patterns, [*families, *sorted({f"{FAMILY}{family}" for family in families.values()})], "check")
    return tuple(check for check, family in families.items() if {check, f"{FAMILY}{family}"} & {*chosen})


def select_architectures(patterns: str | None) -> tuple[str, ...]:
    """The default selection, or every architecture of the release that a glob matches."""
    return select(patterns, catalogue.names(), "architecture") if patterns is not None else catalogue.core_names()
