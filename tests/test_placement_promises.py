"""What placing promises beside an answer: planned maps within their memory, and audits that accuse nothing right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from toolbox import small_case
from torch import nn
from zoo.placements import AuditsByDevice, Placer
from zoo.planners import Overfills

from conformance.judge import judge
from conformance.placing.loaders import load_installed
from conformance.plans.placement import PlacementPlan
from conformance.reference.tying import named_tensors
from conformance.simulation import accelerator
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

AUDITED, WITHIN = "audit-accuses-nothing-right", "planned-map-keeps-within-memory"
FILLS, COVERS = "planned-map-fills-accelerators-first", "map-covers-the-model"
simulated = pytest.mark.skipif(accelerator.why_not() is not None, reason=str(accelerator.why_not()))
NAMED = "stranded-weight-is-named"


def judged(check, subject, architecture="llama", **plan):
    case = small_case(architecture, family="placement", plan=PlacementPlan(**plan))
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


class PlansForTheWrongDtype(Reference):
    """Takes every weight for half of what it is when it is loaded."""

    name = "plans-for-the-wrong-dtype"

    def planned(self, recipe):
        memory = recipe.max_memory and {place: 2 * size for place, size in recipe.max_memory.items()}
        return super().planned(replace(recipe, max_memory=memory))


OVER_TWO = {"map": "auto", "accelerators": 2, "budget": (40, 40, 100)}


@pytest.mark.parametrize("dtype", ["", "float16", "bfloat16"])
def test_bytes_are_counted_in_the_dtype_that_is_loaded(dtype):
    for subject in (Installed(), Reference()):
        assert judged(WITHIN, subject, **OVER_TWO, loaded_as=dtype) == ("pass", ())
    label, (found,) = judged(WITHIN, PlansForTheWrongDtype(), **OVER_TWO, loaded_as=dtype)
    assert (label, found.field) == ("fail", "max_memory")


@pytest.mark.parametrize(("budget", "label"), [((1, 60), "fail"), ((1, 110), "pass")])
def test_the_release_is_held_to_its_memory_in_another_dtype(budget, label):
    plan = {"map": "auto", "accelerators": 1, "budget": budget, "loaded_as": "bfloat16"}
    assert judged(WITHIN, InstalledOverfills(), **plan)[0] == label


def test_what_stays_in_float32_is_told_apart():
    """Half of a T5's blocks stay in float32 where float16 is asked for: what the release plans is not held to that."""
    plan = {"map": "auto", "accelerators": 1, "budget": (100, 100), "loaded_as": "float16"}
    assert judged(WITHIN, Reference(), "t5", **plan)[0] == "pass"
    assert judged(WITHIN, InstalledOverfills(), "t5", **plan)[0] == "allowed"
    assert judged(WITHIN, Overfills(), "t5", **plan)[0] == "fail"


class RestsOnTheCpu(Installed):
    """Brings the whole model to the accelerator when it runs."""

    name = "rests-on-the-cpu"

    def place(self, recipe):
        from accelerate import cpu_offload_with_hook

        model = load_installed(type(recipe.model), recipe.checkpoint)
        return cpu_offload_with_hook(model, "sim:0")[0]


class StaysOnTheCpu(RestsOnTheCpu):
    """Leaves it there."""

    name = "stays-on-the-cpu"

    def place(self, recipe):
        return load_installed(type(recipe.model), recipe.checkpoint)


@simulated
@pytest.mark.parametrize(("subject", "label"), [(RestsOnTheCpu(), "not-applicable"), (StaysOnTheCpu(), "fail")])
def test_a_model_that_only_rests_on_the_cpu_has_no_map_to_fill(subject, label):
    assert judged(FILLS, subject, map="auto", accelerators=1, budget=(450, 130))[0] == label


class LeavesBehind(Installed):
    """Moves a model to the accelerator without a map, but for what has this in its name."""

    name = "leaves-behind"

    def __init__(self, what):
        self.what = what

    def place(self, recipe: Any) -> Any:
        model = load_installed(type(recipe.model), recipe.checkpoint)
        left = {name: tensor.detach().clone() for name, tensor in named_tensors(model).items() if self.what in name}
        model = model.to("sim:0")
        for name, tensor in left.items():
            path, _, own = name.rpartition(".")
            module = model.get_submodule(path)
            if own in module._parameters:
                module._parameters[own] = nn.Parameter(tensor)
            else:
                module._buffers[own] = tensor
        return model


@simulated
@pytest.mark.parametrize(("what", "label"), [("inv_freq", "allowed"), ("norm", "fail")])
def test_constants_beside_a_model_on_one_device_ask_for_no_map(what, label):
    assert judged(COVERS, LeavesBehind(what), places=("sim:0",), accelerators=1)[0] == label
