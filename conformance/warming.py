"""Loading what cases need, once a process and before any clock starts."""

from __future__ import annotations

from collections.abc import Iterable

from conformance import registry, upstream
from conformance.architectures.capabilities import capabilities

PLAIN = "llama"  # every release has it, and most types load what it does


def warm_up(families: Iterable[str] = ()) -> None:
    """Import torch, the release and every check; start the process of its own that some of the families need."""
    upstream.quiet()
    registry.load()
    capabilities(PLAIN)
    if any(registry.families()[family].isolated for family in families):
        from conformance.isolation import CHILD

        CHILD.start()
