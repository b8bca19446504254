"""How the installed release is made to use a mechanism that it does not use by itself, and why it may lack one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from conformance.upstream.stopping import deferral, lacks_deferral

MECHANISMS: dict[str, Callable[[], AbstractContextManager[Any]]] = {"stopping": deferral}
LACKING: dict[str, Callable[[], str | None]] = {"stopping": lacks_deferral}


def mechanism(name: str) -> AbstractContextManager[Any]:
    """For the length of the block, the installed `generate` decodes by this mechanism."""
    return MECHANISMS.get(name, nullcontext)()


def lacks(name: str) -> str | None:
    """Why the installed release has no such mechanism, or None where it has."""
    return LACKING.get(name, lambda: None)()
