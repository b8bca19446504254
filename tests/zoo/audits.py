"""Audits that are blind to one kind of damage. All else is the reference's, and models are placed right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.reference.placement import PlacementReport, audit_placement
from zoo.placements import Placer


class Auditor(Placer):
    """Audits as the reference does, and then forgets of it what it is blind to."""

    name = "auditor"

    def audit(self, model: Any) -> None:
        self.seen(model, audit_placement(model)).raise_if_wrong()

    def seen(self, model: Any, report: PlacementReport) -> PlacementReport:  # noqa: ARG002
        """What this one sees of a right report."""
        return report


class BlindToBuffers(Auditor):
    """Asks where parameters are, and of no buffer."""

    name = "blind-to-buffers"

    def seen(self, model: Any, report: PlacementReport) -> PlacementReport:
        buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
        return replace(
            report,
            stranded={name: why for name, why in report.stranded.items() if name not in buffers},
            mapless=False,
        )


class BlindToTies(Auditor):
    """Does not ask whether what is tied is one."""

    name = "blind-to-ties"

    def seen(self, model: Any, report: PlacementReport) -> PlacementReport:  # noqa: ARG002
        return replace(report, split={})


class BlindToTheMap(Auditor):
    """Does not read the map."""

    name = "blind-to-the-map"

    def seen(self, model: Any, report: PlacementReport) -> PlacementReport:  # noqa: ARG002
        return replace(report, unmapped=())


class BlindToPlaces(Auditor):
    """Takes what is on any device for usable."""

    name = "blind-to-places"

    def seen(self, model: Any, report: PlacementReport) -> PlacementReport:  # noqa: ARG002
        return replace(report, elsewhere={})


class BlindToCopies(Auditor):
    """Takes every hook that offloads for one that has something to bring."""

    name = "blind-to-copies"

    def seen(self, model: Any, report: PlacementReport) -> PlacementReport:  # noqa: ARG002
        kept = {name: why for name, why in report.stranded.items() if not why.startswith("its hook has no copy")}
        return replace(report, stranded=kept)
