"""Images and sound through chunks, earlier turns, drafts and left padding: right on the reference, and counted."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from zoo import drafting

from conformance.architectures import catalogue
from conformance.architectures.media import media_names, recipe
from conformance.architectures.shrink import tiny_config
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.drafting.media_use import Seen
from conformance.drafting.modes import modes
from conformance.judge import judge
from conformance.listing import media_families
from conformance.options import Options
from conformance.planning import pairs_of
from conformance.plans.prefill import PrefillPlan
from conformance.reference.drafters import only_first_layers
from conformance.runs import Runs
from conformance.strategies.prompts import media_span, prompts, whole_parts
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

LONG = (3, 4, 5, 6, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 8, 9, 3, 4, 5, 6)
CHECKS = (
    "continuing-matches-from-scratch",
    "chunked-prefill-matches-whole",
    "assisted-matches-plain",
    "prompt-lookup-matches-plain",
    "first-iteration-happens-once",
    "multimodal-inputs-are-used-once",
)
PLANS = {
    "chunks": {"chunk": 3},
    "images later": {"turns": (1,)},
    "images in the cache": {"turns": (22,), "only_new": True, "chunk": 2},
    "drafts": {"drafter": "same", "chunk": 3},
    "lookup": {"drafter": "lookup", "turns": (1, 22)},
}
QUICK = {"llava", "gemma3", "qwen2_vl"}  # no placeholder like another: plain, a block that sees itself, with a grid
TYPES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.quality]) for name in media_names()]
CONTINUED = [name for name in media_names() if recipe(name).token and name != "paligemma"]


def case_of(name, rows=(LONG,), images=1, **plan):
    return Case(
        family="prefill",
        model=ModelSpec(architecture=name, config=tiny_config(name)),
        prompt=Prompt(rows=rows, images=images, image_seed=3),
        settings=Settings(max_new_tokens=3),
        plan=PrefillPlan(**plan),
    )


def labels(case, subject, checks=CHECKS):
    judged = judge(case, checks, subject)
    return {name: verdict.label for name, verdict in judged.verdicts.items()}, judged.events


@pytest.mark.quality
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("name", media_names())
def test_nothing_is_found_on_the_reference(name, plan):
    found, _ = labels(case_of(name, **plan), Reference())
    assert "fail" not in found.values()
    assert "pass" in found.values()


@pytest.mark.parametrize("plan", [PLANS["images in the cache"], PLANS["drafts"]], ids=["in the cache", "drafts"])
@pytest.mark.parametrize("name", sorted(QUICK))
def test_nothing_is_found_on_the_reference_in_a_moment(name, plan):
    test_nothing_is_found_on_the_reference(name, plan)


@pytest.mark.parametrize("turn", [1, 22])
@pytest.mark.parametrize("name", [kind for kind in TYPES if kind.values[0] in CONTINUED])
def test_a_conversation_goes_on_after_and_before_its_images(name, turn):
    found, events = labels(case_of(name, turns=(turn,)), Reference(), CHECKS[:1])
    assert found == {CHECKS[0]: "pass"}
    assert f"turns: images {'come later' if turn == 1 else 'in the cache'}" in events


def test_padded_rows_with_images_are_continued():
    found, events = labels(case_of("llava", rows=(LONG, LONG[:15]), turns=(22,)), Reference(), CHECKS[:1])
    assert found == {CHECKS[0]: "pass"}
    assert "turns: images in the cache" in events


def test_a_part_that_would_split_an_image_is_no_turn():
    own = modes(Runs(case_of("llava", turns=(1, 4, 22)), Installed()))
    assert own.media_span == (2, 6)
    assert own.turns == (1, 22)
    assert own.brings_images(1, 22)
    assert not own.brings_images_itself


def test_who_derives_positions_gets_all_ids_with_new_images():
    own = {name: modes(Runs(case_of(name, turns=(1,), only_new=True), Installed())) for name in ("llava", "qwen2_vl")}
    assert [its.left_out(1, its.width) for its in own.values()] == [1, 0]
    assert own["qwen2_vl"].left_out(22, 40) == 22


@pytest.mark.parametrize("plan", [{"chunk": 2}, {"drafter": "same"}], ids=["chunks", "drafts"])
def test_a_second_prefill_is_counted(plan):
    with drafting.prefills_twice():
        found, _ = labels(case_of("llava", **plan), Reference(), CHECKS[-1:])
    assert found == {CHECKS[-1]: "fail"}


@pytest.mark.parametrize(
    ("raw", "encoded", "times"),
    [
        ({"itself": 1}, 0, ("itself", 1)),
        ({}, 4, ("itself", 1)),
        ({"tower": 1}, 2, ("itself", 0.5)),
        ({"tower": 2}, 4, ("tower", 2)),
        ({"itself": 1}, 4, ("itself", 2)),
    ],
    ids=["tensors", "encoded", "half of it", "encoded twice", "both"],
)
def test_parts_add_up_to_once(raw, encoded, times):
    assert Seen(Counter(raw), encoded).times(4) == times


def test_by_default_one_family_has_types_that_take_images():
    default = Options(checks=("repeatable", "mode-is-repeatable"), architectures=catalogue.core_names())
    extra = {(family, name) for family, name in pairs_of(default) if name not in catalogue.core_names()}
    assert extra == {("prefill", name) for name in media_names() if name in catalogue.names()}
    assert media_families() == {"prefill"}
    typed = default.replace(architectures=("llama", "llava"))
    assert len(pairs_of(typed)) == 4


def test_an_early_exit_cuts_what_decodes_not_the_tower():
    model = Runs(case_of("qwen2_vl"), Installed()).scenario.model()
    with only_first_layers(model, 1):
        assert len(model.model.language_model.layers) == 1
        assert len(model.model.visual.blocks) == 2
    assert len(model.model.language_model.layers) == 2


@settings(max_examples=30, deadline=None, database=None)
@given(prompts(vocabulary=60, images=media_span("qwen2_vl")))
def test_parts_of_a_prompt_split_no_image(prompt):
    case = case_of("qwen2_vl").replace(prompt=prompt)
    own = modes(Runs(case, Installed()))
    for part in whole_parts("qwen2_vl", prompt):
        assert 0 < part < own.width + own.padding
        assert not own.media_span[0] < part < own.media_span[1] or len(prompt.rows) > 1


def test_images_of_a_script_are_those_of_the_project():
    import numpy as np

    from conformance.weights import uniform

    for name in ("llava", "qwen2_vl", "qwen2_audio"):
        scenario = Runs(case_of(name, rows=(LONG, LONG[:3])), Installed()).scenario
        for field, source in scenario.media.sources([0, 1], "float32").items():
            made = eval(source, {"np": np, "torch": torch, "uniform": uniform})
            assert torch.equal(made, scenario.inputs()[field])


def test_images_without_placeholders_take_places_that_a_script_does_not_know():
    """The cache of GIT holds them before the ids: what is right by its length is another position's."""
    case = case_of("git", rows=((1,),), drafter="scripted", most=1, script=(False, False, True))
    found = judge(case, ["same-model-is-believed"], Reference()).verdicts["same-model-is-believed"]
    assert found.reason == "a script loses its place in the cache"
