"""What placing promises beside an answer: planned maps within their memory, and audits that accuse nothing right."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toolbox import small_case
from zoo.placements import AuditsByDevice, Placer
from zoo.planners import Overfills

from conformance.judge import judge
from conformance.plans.placement import PlacementPlan
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

AUDITED, WITHIN = "audit-accuses-nothing-right", "planned-map-keeps-within-memory"
NAMED = "stranded-weight-is-named"


def judged(check, subject, **plan):
    case = small_case(family="placement", plan=PlacementPlan(**plan))
    verdict = judge(case, [check], subject).verdicts[check]
    return verdict.label, verdict.differences


@pytest.mark.parametrize("loader", ["from_pretrained", "cpu_offload", "disk_offload"])
def test_an_audit_does_not_accuse_what_hooks_bring(loader):
    places = ("disk",) if loader == "from_pretrained" else ("cpu",)
    assert judged(AUDITED, Reference(), loader=loader, places=places) == ("pass", ())
    label, (found,) = judged(AUDITED, AuditsByDevice(), loader=loader, places=places)
    assert (label, found.kind) == ("fail", "accused")


class Blind(Placer):
    """Its audit looks at nothing."""

    def audit(self, model):
        pass


def test_the_release_that_audits_nothing_excuses_no_audit_that_is_blind():
    assert judged(NAMED, Reference(), stranded=0) == ("pass", ())
    assert judged(NAMED, Installed(), stranded=0)[0] == "fail"
    assert judged(NAMED, Blind(), stranded=0)[0] == "fail"
    assert judged(NAMED, Placer(), stranded=0)[0] == f"blocked-by installed {NAMED}"


def test_a_planned_map_is_held_to_its_memory():
    assert judged(WITHIN, Reference(), map="auto", budget=(60,)) == ("pass", ())
    assert judged(WITHIN, Installed(), map="auto", budget=(60,)) == ("pass", ())
    label, (found,) = judged(WITHIN, Overfills(), map="auto", budget=(60,))
    assert (label, found.got.split(" bytes")[0]) == ("fail", "cpu is given 29024")


class InstalledOverfills(Installed):
    """Loads on a map that it does not plan but take: everything on the CPU."""

    def place(self, recipe):
        return super().place(replace(recipe, device_map={"": "cpu"}, max_memory=None))


@pytest.mark.parametrize(
    ("accelerators", "budget", "label"), [(0, (60,), "allowed"), (1, (1, 60), "fail"), (1, (1, 100), "pass")]
)
def test_the_release_is_held_to_what_its_documentation_promises(accelerators, budget, label):
    plan = {"map": "auto", "accelerators": accelerators, "budget": budget}
    assert judged(WITHIN, InstalledOverfills(), **plan)[0] == label
