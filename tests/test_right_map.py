"""Whether a device map is right, told without a planner; and who is blamed for what fails on one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toolbox import CHECKS_OF, small_case
from zoo.planners import ForgetsAModule

from conformance import registry
from conformance.build import Scenario
from conformance.errors import NotOffered
from conformance.judge import judge
from conformance.placing import models
from conformance.placing.loaders import place_with_originals, planned_by_reference
from conformance.placing.on_planned_map import InstalledOnPlannedMap, on_its_own_map
from conformance.placing.recipe import recipe_of
from conformance.placing.right_map import place_in, wrong_in
from conformance.plans.placement import PlacementPlan
from conformance.reference.planner import plan_device_map
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

MATCHES = "placed-matches-unplaced"
RIGHT = {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": "cpu", "model.norm": "disk", "lm_head": 0}


def tied_model():
    return models.make(Scenario(small_case(family="placement")), "tied embeddings")


def test_the_longest_entry_around_a_name_tells_its_place():
    entries = {"": "cpu", "a": 0, "a.b": 1, "a.bc": "disk"}
    assert [place_in(entries, name) for name in ("a.b.w", "a.bcd.w", "a.bc", "ab")] == [1, 0, "disk", "cpu"]
    assert place_in({"a.b": 1}, "a.bc.w") is None


def test_a_right_map_has_nothing_wrong():
    assert wrong_in(tied_model(), RIGHT, None) is None
    assert wrong_in(tied_model(), {"": "disk"}, {0: 1}) is None


@pytest.mark.parametrize(
    ("change", "limits", "reason"),
    [
        ({"model.norm": None}, None, "no entry covers model.norm.weight"),
        ({"model.norm": None, "model.nor": 0}, None, "no entry covers model.norm.weight"),
        ({"model.layers.0.mlp": 1}, None, "model.layers.0, a LlamaDecoderLayer, is not to be split and is on 0 and 1"),
        ({"lm_head": "cpu"}, None, "model.embed_tokens.weight, lm_head.weight are one weight and are on 0 and cpu"),
        ({}, {0: 5000}, "0 is given"),
        ({}, {0: 1e9, "cpu": 10}, "cpu is given"),
    ],
)
def test_what_is_wrong_is_named(change, limits, reason):
    changed = {name: place for name, place in {**RIGHT, **change}.items() if place is not None}
    assert wrong_in(tied_model(), changed, limits).startswith(reason)


def test_a_tied_weight_takes_its_room_once():
    model = tied_model()
    size = sum(tensor.numel() * tensor.element_size() for tensor in [*model.parameters(), *model.buffers()])
    assert wrong_in(model, {"": 0}, {0: size}) is None
    assert wrong_in(model, {"": 0}, {0: size - 1}).startswith("0 is given")


@pytest.mark.parametrize("kind", ["own", "tied embeddings", "tied blocks", "tied parts"])
@pytest.mark.parametrize("budget", [(60, 40, 200), (90, 20, 30), (100, 10, 10)])
def test_the_maps_of_the_reference_planner_are_right(kind, budget, tmp_path):
    model = models.make(Scenario(small_case(family="placement")), kind)
    asked = recipe_of(PlacementPlan(map="auto", budget=budget, accelerators=2), model, tmp_path, tmp_path)
    assert wrong_in(model, Reference().planned(asked).device_map, asked.max_memory) is None


def asked_for(folder, **plan):
    """A recipe for a model that is its own, so that it can be placed."""
    return recipe_of(PlacementPlan(**plan), Scenario(small_case(family="placement")).model(), folder, folder)


def test_the_release_is_run_on_the_map_that_the_subject_plans_and_shares_nothing_else(tmp_path):
    asked = asked_for(tmp_path, map="auto", budget=(60,))
    asked.model.save_pretrained(asked.checkpoint)
    planned = plan_device_map(asked.model, asked.max_memory).device_map
    (installed,) = on_its_own_map(Reference())
    placed = installed.place(asked)
    assert len(set(planned.values())) > 1  # another map than the release's own, or than none
    assert placed.hf_device_map == planned
    assert not hasattr(placed, "tensors_before_placing")
    assert on_its_own_map(Installed()) == ()


def test_a_map_is_an_excuse_for_what_is_done_on_it_and_not_for_what_it_is():
    excused = {name for name in CHECKS_OF["placement"] if registry.get(name).excuses(Reference())}
    assert MATCHES in excused
    of_the_map = ("placed-groups-stay-tied", "map-covers-the-model", "planned-map-keeps-within-memory")
    assert not excused & {*of_the_map, "placement-changes-no-config", "stranded-weight-is-named"}


def test_the_release_excuses_no_planner_that_raises(tmp_path):
    def broken(_):
        raise IndexError("no place is left")

    with pytest.raises(NotOffered, match="the planner itself raises"):
        InstalledOnPlannedMap(broken).place(asked_for(tmp_path, map="auto", budget=(60,)))


def test_the_release_is_not_run_on_a_wrong_map(tmp_path):
    (installed,) = on_its_own_map(ForgetsAModule())
    with pytest.raises(NotOffered, match="no entry covers lm_head"):
        installed.place(asked_for(tmp_path, map="auto", budget=(60,)))


def test_the_release_is_not_run_again_on_a_map_that_the_case_has(tmp_path):
    (installed,) = on_its_own_map(Reference())
    with pytest.raises(NotOffered, match="the case's own"):
        installed.place(asked_for(tmp_path, places=("disk",)))


def test_a_loader_that_refuses_a_map_planned_wrong_refuses_nothing_of_the_callers():
    case = small_case(family="placement", plan=PlacementPlan(map="auto", budget=(60,)))
    made = judge(case, ["planning-never-crashes"], ForgetsAModule()).verdicts["planning-never-crashes"]
    assert (made.status, made.differences[0].kind) == ("fail", "crash")


class OwnPlanner(Installed):
    """A stranger's planner: it says nothing of what the release does on its maps."""

    name = "own-planner"

    def planned(self, recipe):
        return planned_by_reference(recipe)

    def place(self, recipe):
        return place_with_originals(self.planned(recipe))


@pytest.mark.parametrize("subject", [Reference(), OwnPlanner()], ids=lambda subject: subject.name)
def test_what_the_release_cannot_do_on_a_map_is_its_fault_whoever_planned_it(subject):
    """On 5.24.0 the release does this on a map of its own, and raises on that of the reference planner."""
    plan = PlacementPlan(map="auto", budget=(60,), mode="lookup")
    case = small_case("gemma3n_text", family="placement", plan=plan)
    theirs = judge(case, [MATCHES], InstalledOnPlannedMap(Reference().planned)).verdicts[MATCHES]
    ours = judge(case, [MATCHES], subject).verdicts[MATCHES]
    assert theirs.status in ("pass", "fail")
    assert ours.status == {"pass": "pass", "fail": "blocked-by"}[theirs.status]


def test_limits_that_a_planner_raises_make_no_map_right(tmp_path):
    def raises(recipe):
        recipe.max_memory["cpu"] *= 9
        return replace(recipe, device_map={"": "cpu"})

    with pytest.raises(NotOffered, match="cpu is given"):
        InstalledOnPlannedMap(raises).place(asked_for(tmp_path, map="auto", budget=(60,)))
