"""One item per check family, architecture and round; the plugin makes the parameters."""

from __future__ import annotations

from typing import Any


def test_conformance(conformance_item: Any, conformance_worker: Any, record_property: Any) -> None:
    """Draw, judge, record, shrink; fails when a check found something."""
    conformance_worker.run(conformance_item, record_property)
