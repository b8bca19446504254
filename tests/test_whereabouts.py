"""Where a map says that the tensors of a model are, and whether they are there: on plain values, and on a few maps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_reference_placement import Small
from toolbox import small_case
from zoo.placements import IgnoresTheMap, PutsAPartElsewhere

from conformance.isolation import Child
from conformance.judge import judge
from conformance.placing.recipe import Recipe
from conformance.placing.whereabouts import Where, out_of_place, split_by, told, told_otherwise
from conformance.plans.placement import PlacementPlan
from conformance.simulation import accelerator
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

CHECK = "parts-are-where-the-map-says"
SIM, OTHER, CPU = (torch.device("cuda", 0), torch.device("cuda", 1), torch.device("cpu"))
WEIGHT = {"buffer": False, "saved": True}
BUFFER, UNSAVED = {"buffer": True, "saved": True}, {"buffer": True, "saved": False}


def held(device, **kind):
    return Where(device, None, **{**WEIGHT, **kind})


def brought(device, **kind):
    return Where(None, device, **{**WEIGHT, **kind})


def terms(device_map, *, loader="dispatch_model", buffers=False, tie=False):
    recipe = Recipe(None, Path(), Path(), loader, device_map, offload_buffers=buffers)
    return told(Small(tie=tie), device_map, recipe, "cuda")


def wrong(device_map, found, **how):
    return out_of_place(terms(device_map, **how), found)


@pytest.mark.parametrize(
    ("place", "where"),
    [
        (0, held(SIM)),
        ("cuda:1", held(OTHER)),
        (torch.device("cuda", 1), held(OTHER)),
        ("cpu", brought(SIM)),
        ("cpu", brought(OTHER)),  # any accelerator of the map runs what is offloaded
        ("disk", brought(SIM)),
        ("disk", Where(SIM, SIM, buffer=False, saved=True)),  # a hook puts a copy of its own in its place
        ("disk", held(SIM, **BUFFER)),
        ("cpu", held(SIM, **UNSAVED)),
    ],
)
def test_what_is_in_its_place_is_right(place, where):
    assert wrong({"embed": 0, "blocks.1": place, "blocks.2": 1}, {"blocks.1.w": where}) is None


@pytest.mark.parametrize(
    ("place", "where"),
    [
        (0, held(OTHER)),
        (0, held(CPU)),
        (0, brought(SIM)),
        ("cpu", held(CPU)),
        ("cpu", brought(CPU)),
        ("disk", held(SIM)),
        ("disk", brought(torch.device("cuda", 2))),
        ("disk", held(CPU, **BUFFER)),
        ("disk", brought(SIM, **BUFFER)),
    ],
)
def test_what_is_elsewhere_is_named(place, where):
    told_of = wrong({"embed": 0, "blocks.1": place, "blocks.2": 1}, {"blocks.1.w": where})
    assert told_of == f"blocks.1.w is {where}, and the map says {'cuda:0' if place == 0 else place}"


def test_the_cpu_as_a_device_may_run_what_it_holds():
    device_map = {"embed": 0, "blocks": torch.device("cpu"), "head": "disk"}
    assert wrong(device_map, {"blocks.w": held(CPU), "head.w": brought(SIM)}) is None
    assert wrong(device_map, {"blocks.w": brought(SIM), "head.w": brought(SIM)}) is None
    assert wrong(device_map, {"blocks.w": held(OTHER)}) is not None


def test_an_entry_ends_at_a_dot():
    assert wrong({"blocks.1": "cuda:1", "blocks": 0}, {"blocks.10.w": held(SIM), "blocks.1.w": held(OTHER)}) is None
    assert wrong({"blocks.1": "cuda:1"}, {"blocks.10.w": held(CPU)}) is None  # no entry covers it


def test_what_is_offloaded_runs_on_one_device():
    found = {"blocks.1.w": brought(SIM), "blocks.2.w": brought(OTHER)}
    assert "blocks." in wrong({"a": 0, "b": 1, "blocks": "disk"}, found)


def test_without_an_accelerator_the_cpu_holds_and_runs():
    device_map = {"embed": "cpu", "blocks": "disk"}
    assert wrong(device_map, {"embed.w": held(CPU), "blocks.1.w": brought(CPU)}) is None
    assert wrong(device_map, {"embed.w": brought(CPU)}).startswith("embed.w is brought to cpu")


def test_buffers_are_offloaded_where_that_is_asked_and_they_are_saved():
    device_map = {"embed": 0, "blocks": "disk"}
    assert wrong(device_map, {"blocks.b": brought(SIM, **BUFFER)}, buffers=True) is None
    assert wrong(device_map, {"blocks.b": held(SIM, **BUFFER)}, buffers=True) is not None
    assert wrong(device_map, {"blocks.b": held(SIM, **UNSAVED)}, buffers=True) is None


def test_an_offloader_offloads_all_and_runs_it_where_it_is_told():
    assert wrong({"": "cuda:1"}, {"a.w": brought(OTHER), "a.b": held(OTHER, **BUFFER)}, loader="cpu_offload") is None
    assert wrong({"": "cuda:1"}, {"a.w": held(OTHER)}, loader="disk_offload") is not None
    assert wrong({"": "cpu"}, {"a.w": brought(CPU)}, loader="cpu_offload") is None


def test_a_tied_weight_is_in_any_place_of_its_group():
    device_map = {"embed": 0, "head": 1, "blocks": 0}
    assert wrong(device_map, {"head.weight": held(SIM), "embed.weight": held(SIM)}, tie=True) is None
    assert wrong(device_map, {"head.weight": held(SIM)}) is not None
    assert split_by(terms(device_map, tie=True)) == {"embed.weight", "head.weight"}
    assert split_by(terms({"": 0}, tie=True)) == set()


def test_a_tensor_of_the_model_itself_may_be_on_the_main_device():
    assert wrong({"scale": 1, "embed": 0}, {"scale": held(SIM), "embed.w": held(SIM)}) is None
    assert wrong({"scale": 1, "embed": 0}, {"scale": held(CPU)}) is not None


def test_the_map_that_is_told_afterwards_is_the_one_that_was_asked_for():
    asked, names = terms({"embed": 0, "blocks": "disk"}), {"embed.w": held(SIM), "blocks.1.w": brought(SIM)}
    assert told_otherwise(asked, {"embed": torch.device("cuda", 0), "blocks.1": "disk"}, names) is None
    assert told_otherwise(asked, {}, names) is None  # map-covers-the-model tells
    assert told_otherwise(asked, {"": 0}, names) == "blocks.1.w on cuda:0, and the map asked for says disk"


CPU_AND_DISK = {"map": "parts", "places": ("cpu", "disk", "cpu", "disk")}


@pytest.mark.parametrize(
    ("subject", "field"),
    [(Installed(), None), (Reference(), None), (IgnoresTheMap(), "places"), (PutsAPartElsewhere(), "hf_device_map")],
)
def test_a_map_that_is_not_kept_is_found(subject, field):
    case = small_case(family="placement", plan=PlacementPlan(**CPU_AND_DISK))
    verdict = judge(case, [CHECK], subject).verdicts[CHECK]
    assert [found.field for found in verdict.differences] == ([field] if field else [])


@pytest.fixture(scope="module")
def child():
    process = Child(seconds=300)
    yield process
    process.close()


@pytest.mark.skipif(accelerator.why_not() is not None, reason=str(accelerator.why_not()))
@pytest.mark.parametrize(
    ("subject", "label"), [("installed", "pass"), ("zoo.placements:PutsAWeightWhereItsModuleIsNot", "fail")]
)
def test_what_is_on_another_device_is_found(child, subject, label):
    plan = PlacementPlan(map="parts", places=("sim:0", "sim:1", "cpu"), accelerators=2)
    verdict = child.judge(small_case(family="placement", plan=plan), [CHECK], subject).verdicts[CHECK]
    assert verdict.label == label
    assert all(found.got.startswith("model.embed_tokens.weight is on sim:1") for found in verdict.differences)
