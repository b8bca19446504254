"""Placement cases made real: recipes, models with ties, comparisons, and verdicts on a few placements."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from toolbox import CHECKS_OF, small_case
from zoo.placements import ChangesWhatItPasses, Placer

from conformance.build import Scenario
from conformance.case import parse_case
from conformance.errors import CaseRefused, NotBuildable
from conformance.judge import judge
from conformance.outcome import Outcome
from conformance.placing import devices, models
from conformance.placing.comparing import compare_calls, config_changes
from conformance.placing.damaging import strand
from conformance.placing.recipe import recipe_of, size_of
from conformance.placing.refusing import refused_clearly
from conformance.placing.stranding import _names_one
from conformance.plainer import plainer_cases
from conformance.plans.placement import PlacementPlan
from conformance.profiles import exploring
from conformance.reference.placement import PlacementError, PlacementReport
from conformance.reference.planner import DoesNotFit
from conformance.reference.tying import declared_pairs
from conformance.simulation.ledger import OutOfMemory
from conformance.strategies.cases import cases
from conformance.strategies.families.placement import WITHOUT_IMAGES
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

MATCHES, NAMED = "placed-matches-unplaced", "stranded-weight-is-named"


def scenario_of(architecture="llama", **parts):
    return Scenario(small_case(architecture, family="placement", **parts))


def recipe(model, **plan):
    return recipe_of(PlacementPlan(**plan), model, Path("saved"), Path("off"))


def verdicts(subject, **plan):
    case = small_case(family="placement", plan=PlacementPlan(**plan))
    return judge(case, CHECKS_OF["placement"], subject).verdicts


def test_parts_go_to_the_places_in_turn_and_ties_together():
    model = models.make(scenario_of(), "tied embeddings")
    named = recipe(model, map="parts", places=("cpu", "disk")).device_map
    assert named["model.embed_tokens"] == named["lm_head"] == "cpu"
    assert named["model.layers.0"] == "disk"
    split = recipe(model, map="parts", places=("cpu", "disk"), split_tied=True).device_map
    assert split["model.embed_tokens"] != split["lm_head"]


def test_budgets_are_shares_of_the_model():
    model = scenario_of().model()
    memory = recipe(model, map="auto", budget=(50, 25), accelerators=1).max_memory
    assert memory == {0: size_of(model) // 2, "cpu": size_of(model) // 4}


@pytest.mark.parametrize(("unit", "size"), [("KB", 1000), ("KiB", 1024)])
def test_budgets_may_be_told_in_words(unit, size):
    model = scenario_of().model()
    told = recipe(model, map="auto", budget=(50, 1), accelerators=1, limits=unit)
    whole = size_of(model) // 2 // size
    assert told.max_memory == {0: f"{whole}{unit}", "cpu": f"1{unit}"}
    assert told.limits == {0: whole * size, "cpu": size}


@pytest.mark.parametrize("kind", ["tied embeddings", "tied blocks", "tied parts"])
def test_a_model_with_ties_shares_its_weights(kind):
    model = models.make(scenario_of(), kind)
    pairs = declared_pairs(model)
    assert ("lm_head.weight" in pairs) == (kind == "tied embeddings" or "lm_head.weight" in pairs)
    assert all(model.get_parameter(one) is model.get_parameter(other) for one, other in pairs.items())
    if kind != "tied embeddings":
        assert "model.layers.1.mlp.up_proj.weight" in pairs


def test_a_model_of_one_block_has_none_to_tie():
    case = small_case(family="placement")
    case = case.replace(model=case.model.replace(config={**case.model.config, "num_hidden_layers": 1}))
    with pytest.raises(NotBuildable, match="no two blocks"):
        models.make(Scenario(case), "tied blocks")


def test_a_stranded_part_is_on_meta_and_named():
    model = scenario_of().model()
    lost = strand(model, 1)
    assert lost
    assert all(model.get_parameter(name).is_meta for name in lost)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("model.layers.1.mlp.up_proj.weight is on meta", True),
        ("load model.layers.1.mlp.up_proj, which has no weights.", True),
        ("model.layers.1.mlp.up_proj.weights", False),
        ("model.layers.11.mlp.up_proj.weight is on meta", False),
        ("decoder.model.layers.1.mlp.up_proj.weight is on meta", False),
        ("the head is on meta", False),
        ("head.weight: on meta", True),
    ],
)
def test_a_message_names_a_part_by_whole_words(message, named):
    assert _names_one(message, ["model.layers.1.mlp.up_proj.weight", "head.weight"]) is named


@pytest.mark.parametrize(
    ("error", "clear"),
    [
        (ValueError("please pass along an `offload_folder`."), True),
        (ValueError("The `device_map` does not contain the module lm_head."), True),
        (NotImplementedError("no max_memory for this type"), True),
        (NotImplementedError("nothing of this type is kept on the disk"), False),
        (ValueError("weight is on the meta device, we need a `value` to put in on cpu."), False),  # from deep inside
        (ValueError("no device for: model.layers.1, the last"), True),
        (DoesNotFit(3, ["the largest piece"], {"cpu": 1}), True),
        (PlacementError(PlacementReport(stranded={"lm_head.weight": "it is on meta"})), True),
        (OutOfMemory("sim:0 has no room for 3 bytes"), True),
        (IndexError("increase max_memory"), False),
        (RuntimeError("device_map and max_memory: out of memory"), False),
        (RuntimeError("Expected all tensors to be on the same device, but got cpu and sim:0"), False),
        (ValueError("not enough memory for the model"), False),  # names nothing that is the caller's
        (ValueError("shape of model.layers.17 is wrong"), False),  # the model has no such layer
        (ValueError("list index out of range"), False),
    ],
)
def test_a_refusal_is_clear_by_its_type_and_by_what_it_names(error, clear):
    asked = recipe(scenario_of().model(), map="parts", places=("cpu", "disk", "sim:0"), accelerators=1)
    assert refused_clearly(error, asked) is clear


class RaisesRuntimeError(Installed):
    """A planner that breaks, and happens to speak of the map."""

    def place(self, recipe):
        raise RuntimeError(f"the device_map {recipe.device_map} gives no memory")


def test_a_runtime_error_is_a_crash_whatever_it_says():
    case = small_case(family="placement", plan=PlacementPlan(map="auto"))
    made = judge(case, ["planning-never-crashes"], RaisesRuntimeError()).verdicts["planning-never-crashes"]
    assert (made.status, made.differences[0].kind) == ("fail", "crash")


def test_what_changed_in_a_nested_config_is_told_by_path():
    before, after = {"a": {"b": 1}, "c": 2, "_name_or_path": ""}, {"a": {"b": 3}, "c": 2, "_name_or_path": "x"}
    assert config_changes(before, after) == {"a.b": "1 became 3"}


def outcome(tokens, logits):
    steps = tuple(torch.tensor([step]) for step in logits)
    return Outcome(prompt_length=1, sequences=torch.tensor([[1, *tokens]]), logits=steps, scores=steps)


def test_logits_are_compared_up_to_the_first_other_token():
    one = outcome([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    assert not compare_calls(one, one, 5e-5).differences
    other = outcome([0, 0], [[1.0, 0.0], [0.7, 0.5]])
    assert [d.kind for d in compare_calls(other, one, 5e-5).differences] == ["values"]
    close = outcome([1, 1], [[1.0, 1.00001], [9.0, 9.0]])
    near = outcome([0, 1], [[1.00001, 1.0], [0.0, 1.0]])
    assert compare_calls(close, near, 5e-5).ties


def test_a_near_choice_in_one_row_excuses_no_other_row():
    logits = (torch.tensor([[1.0, 0.0], [1.00001, 1.0]]),)
    right, wrong = (
        Outcome(prompt_length=1, sequences=torch.tensor([[1, first], [1, 0]]), logits=logits, scores=logits)
        for first in (0, 1)
    )
    assert [d.kind for d in compare_calls(wrong, right, 5e-5).differences] == ["tokens"]


@pytest.mark.parametrize(
    "plan",
    [
        {"map": "auto", "budget": (60,)},
        {"map": "parts", "places": ("cpu", "disk"), "model": "tied embeddings"},
        {"loader": "dispatch_model", "map": "parts", "places": ("disk", "cpu")},
        {"loader": "cpu_offload"},
    ],
)
def test_a_right_placement_passes(plan):
    found = verdicts(Reference(), **plan)
    assert found["placed-matches-unplaced"].status == "pass"
    assert found["no-op-reads-meta"].status == "pass"
    assert {v.status for name, v in found.items()} <= {"pass", "allowed", "not-applicable", "blocked-by"}


def test_the_reference_names_what_is_stranded():
    assert verdicts(Reference(), stranded=0)["stranded-weight-is-named"].status == "pass"


def test_modes_that_do_not_sample_return_one_sequence():
    for mode in ("lookup", "beams", "assisted"):
        plan = PlacementPlan(mode=mode)
        case = small_case(family="placement", plan=plan, rows=((3, 4), (5,)), do_sample=True, returned=3)
        assert (
            judge(case, ["placed-matches-unplaced"], Reference()).verdicts["placed-matches-unplaced"].status == "pass"
        )


def test_a_case_that_ties_weights_of_its_own_is_placed_as_it_is():
    tied = ((r"model\.layers\.1\.", r"model\.layers\.0\."),)
    assert models.make(scenario_of(tied=tied), "own") is not None
    with pytest.raises(NotBuildable, match="of its own"):
        models.make(scenario_of(tied=tied), "tied blocks")


class NamesTheSame(ChangesWhatItPasses):
    """Passes on other values, and names another that does, as a way in which the release does it."""

    def also_installed(self, check):
        return (ChangesWhatItPasses(),) if check == MATCHES else ()


class NamesARightOne(ChangesWhatItPasses):
    """Passes on other values, and names one that does not."""

    def also_installed(self, _):
        return (Placer(),)


@pytest.mark.parametrize(
    ("subject", "verdict"),
    [
        (ChangesWhatItPasses(), ("fail", "")),
        (NamesARightOne(), ("fail", "")),
        (NamesTheSame(), ("blocked-by", f"installed {MATCHES}")),
    ],
)
def test_a_failure_is_the_releases_where_a_way_that_the_subject_names_fails_alike(subject, verdict):
    case = small_case(family="placement", plan=PlacementPlan())
    made = judge(case, [MATCHES], subject).verdicts[MATCHES]
    assert (made.status, made.reason) == verdict


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"loader": "dispatch_model", "map": "auto"}, "valid for it: whole or parts"),
        ({"loader": "cpu_offload", "map": "balanced"}, "cpu_offload plans no map, and map is balanced"),
        ({"loader": "disk_offload", "map": "parts", "places": ["cpu", "disk"]}, "takes the whole model"),
        ({"loader": "disk_offload", "places": ["disk"]}, "first of places, which is disk; valid for it: cpu or sim:N"),
    ],
)
def test_a_recipe_that_no_loader_takes_is_refused_in_one_line(plan, said):
    with pytest.raises(CaseRefused, match=said) as refusal:
        parse_case(json.dumps({"family": "placement", "plan": plan}))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "plan",
    [
        {"loader": "disk_offload", "places": ("sim:0",), "accelerators": 2},
        {"loader": "dispatch_model", "map": "parts", "places": ("disk", "sim:0"), "accelerators": 1},
        {"map": "balanced", "budget": (30, 40), "accelerators": 1, "places": ("disk",)},
    ],
)
def test_what_is_plainer_than_a_recipe_is_one_that_a_loader_takes(plan):
    assert list(PlacementPlan(**plan).plainer())


@pytest.mark.parametrize("plan", [{"map": "auto"}, {}, {"loader": "cpu_offload"}])
def test_a_place_that_a_recipe_does_not_use_needs_no_accelerator(plan):
    unused = ("cpu", "sim:1") if not plan else ("sim:1",) if "map" in plan else ("cpu", "sim:0")
    assert devices.why_not(PlacementPlan(**plan, places=unused)) is None


IDLE = (
    ({"places": ("sim:1",), "accelerators": 1}, "plan.places names sim:1, and plan.accelerators is 1"),
    ({"places": ("sim:0",)}, "plan.places names sim:0, and plan.accelerators is 0"),
    ({"by_itself": "WhisperForConditionalGeneration", "model": "tied blocks"}, "plan.model is tied blocks"),
    ({"loader": "dispatch_model", "loaded_as": "float16"}, "plan.loaded_as is of no effect with dispatch_model"),
    ({"loader": "dispatch_model", "stored": "bin"}, "plan.stored is of no effect with dispatch_model"),
    ({"loader": "cpu_offload", "saved_over": "whole"}, "plan.saved_over is of no effect with cpu_offload"),
    ({"split_tied": True}, "plan.split_tied is of no effect with plan.map whole; valid for it: parts"),
    ({"folder": "shared", "loader": "dispatch_model"}, "plan.folder is shared, and dispatch_model is given one for"),
    ({"mistake": "misspelt"}, "plan.mistake is one in a map of parts, and plan.map is whole"),
    ({"by_itself": "WhisperForConditionalGeneration", "mode": "lookup"}, "plan.mode is lookup, and WhisperFor"),
    ({"limits": "KB", "map": "parts"}, "plan.limits is KB, and plan.map parts is planned within no limits"),
    ({"damage": "buffer"}, "plan.damage is buffer, and plan.stranded does not say which one"),
    ({"damage": "moved", "stranded": 0}, "plan.damage is moved, and there is one device only"),
    ({"damage": "unmapped", "stranded": 0}, "plan.damage is unmapped, and the map has no entry to spare"),
    ({"damage": "no copy", "stranded": 0}, "plan.damage is no copy, and no hook has copies"),
)


@pytest.mark.parametrize(("plan", "said"), IDLE)
def test_a_field_that_nothing_reads_is_refused_in_one_line(plan, said):
    with pytest.raises(CaseRefused, match=re.escape(said)) as refusal:
        scenario_of(plan=PlacementPlan(**plan))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("plan", [plan for plan, _ in IDLE])
def test_a_plan_that_is_fitted_says_nothing_in_vain(plan):
    case = small_case(family="placement")
    fitted = PlacementPlan(**plan).fitting(1)
    assert fitted.contradiction(case, 64) is None
    assert fitted.fitting(1) == fitted


def test_what_is_plainer_is_never_refused():
    plan = PlacementPlan(
        map="parts", places=("sim:0", "sim:1"), accelerators=2, split_tied=True, loaded_as="float16", stranded=1,
        damage="moved", saved_over="whole", stored="bin",
    )  # fmt: skip
    assert len([Scenario(case) for case in plainer_cases(small_case(family="placement", plan=plan))]) > 10


@pytest.mark.parametrize("architecture", ["llama", "llava"])
def test_no_plan_is_drawn_that_says_something_in_vain(architecture):
    seen = set()

    @exploring(150)
    @given(cases("placement", architecture))
    def draw(case):
        assert case.plan.contradiction(case, 64) is None
        seen.add(case.prompt.images > 0)
        assert not (case.prompt.images and (case.plan.own_generate or case.plan.mode in WITHOUT_IMAGES))

    draw()
    assert seen == ({False, True} if architecture == "llava" else {False})


@pytest.mark.parametrize("damage", ["untied", "moved", "unmapped", "no copy"])
def test_a_subject_that_audits_nothing_is_asked_for_what_is_on_meta_only(damage):
    plan = PlacementPlan(map="parts", places=("disk", "sim:0"), accelerators=1, stranded=0, damage=damage)
    case = small_case(family="placement", plan=plan)
    verdict = judge(case, [NAMED], Installed()).verdicts[NAMED]
    assert (verdict.status, "audits nothing" in verdict.reason) == ("not-applicable", True)


@pytest.mark.parametrize(
    "plan",
    [
        {"damage": "buffer"},
        {"damage": "untied", "model": "tied blocks"},
        {"damage": "unmapped", "map": "auto", "budget": (60,)},
        {"damage": "no copy", "loader": "disk_offload"},
    ],
    ids=lambda plan: plan["damage"],
)
def test_the_reference_names_what_else_is_damaged(plan):
    assert verdicts(Reference(), stranded=0, **plan)[NAMED].status == "pass"


@pytest.mark.parametrize(
    "plan",
    [
        {"places": ("disk",)},
        {"loader": "cpu_offload"},
        {"loader": "disk_offload"},
        {"map": "auto", "budget": (40,)},
        {"map": "auto", "budget": (60, 60), "accelerators": 1},
        {"map": "parts", "places": ("cpu", "disk")},
        {"map": "parts", "places": ("cpu", "sim:0"), "accelerators": 1},
    ],
)
def test_every_way_to_offload_weights_is_one_need(plan):
    own = PlacementPlan(**plan).traits()
    assert "offloaded" in own
    assert {"loader: cpu_offload", "loader: disk_offload", "place: disk"}.isdisjoint(own)


def test_a_plan_that_fits_offloads_nothing():
    assert PlacementPlan(map="auto", budget=(130,)).traits() == ("map of parts", "planned")
    assert PlacementPlan(map="auto", budget=(60, 60), accelerators=2).traits() == (
        "map of parts",
        "planned",
        "accelerators",
    )
