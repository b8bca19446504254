"""The two ways in which a command ends early: the user's mistake (exit 2) and ours (exit 3)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """Something given from outside is wrong: one line that says what, and what would be valid."""


class CaseRefused(BadInput):
    """A case file, or a case, that cannot be used; nothing was built from it."""


class NotBuildable(ValueError):
    """The installed release cannot make the model of a valid case; the message is the reason."""


class NotOffered(Exception):
    """The subject says that it lacks what a check is about, or may not be asked for it here."""


class HarnessBroke(RuntimeError):
    """A check itself raised: our fault, never a verdict."""


MOST_NAMES = 40
LISTINGS = {"check": "checks", "architecture": "architectures", "subject": "subjects"}


def unknown(what: str, name: str, valid: Iterable[str]) -> BadInput:
    """The error for a name that is not among `valid`, with the closest valid names."""
    choices = sorted(valid)
    close = difflib.get_close_matches(name, choices, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else f"valid: {', '.join(choices[:MOST_NAMES])}"
    if not close and len(choices) > MOST_NAMES:
        hint += f", ... and {len(choices) - MOST_NAMES} more"
        listing = LISTINGS.get(what.split()[0])
        hint += f": conformance list {listing}" if listing else ""
    return BadInput(f"unknown {what} {name!r}; {hint}")
