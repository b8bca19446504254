"""Images and sound in a prompt: the placeholders are right, the tensors are seen, and decoding with a cache agrees."""

import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis.errors import NoSuchExample

from conformance.architectures.media import media_names, recipe, reserved_tokens, takes_media
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.errors import BadInput, CaseRefused
from conformance.judge import judge
from conformance.strategies.cases import cases, vocabulary_of
from conformance.strategies.prompts import media_span, prompts
from conformance.subjects.installed import Installed

ROWS = ((3, 4, 5, 6), (9,))


def with_images(name, images=1, seed=0, rows=ROWS):
    return Case(
        model=ModelSpec(architecture=name, config=tiny_config(name)),
        prompt=Prompt(rows=rows, images=images, image_seed=seed),
        settings=Settings(max_new_tokens=4),
    )


def test_at_least_seven_image_types_and_one_audio_type_take_media():
    layouts = [recipe(name).layout for name in media_names()]
    assert len(layouts) - layouts.count("audio") >= 7
    assert layouts.count("audio") >= 1


@pytest.mark.parametrize("name", media_names())
def test_decoding_with_images_is_what_recomputing_gives(name):
    case = with_images(name, recipe(name).most, seed=3)
    judged = judge(case, ["cached-matches-recomputed", "padded-row-matches-alone"], Installed())
    assert {check: verdict.label for check, verdict in judged.verdicts.items()} == dict.fromkeys(
        judged.verdicts, "pass"
    )
    assert "images: in the prompt" in judged.events


@pytest.mark.parametrize("name", media_names())
def test_another_image_gives_other_logits(name):
    def first_logits(seed):
        scenario = Scenario(with_images(name, seed=seed, rows=((3, 4),)))
        config = scenario.generation_config(max_new_tokens=1)
        return scenario.model().generate(**scenario.inputs(), generation_config=config).logits[0]

    # Seeds six apart have images of the same shape.
    assert not torch.allclose(first_logits(0), first_logits(6))
    assert torch.equal(first_logits(0), first_logits(0))


@pytest.mark.parametrize("name", [name for name in media_names() if recipe(name).token])
def test_each_row_holds_its_placeholders_and_the_tensors_fit(name):
    scenario = Scenario(with_images(name, images=2, seed=1))
    token = scenario.media.token
    for number, row in enumerate(scenario.rows):
        expected = sum(recipe(name).placeholders(seed) for seed in scenario.media.seeds(number))
        assert row.count(token) == expected
        assert row[0] == ROWS[number][0]
    assert token >= vocabulary_of(scenario.case.model)


def test_a_type_without_eyes_refuses_images():
    assert not takes_media("llama")
    assert reserved_tokens("llama") == 0
    with pytest.raises(BadInput, match="prompts of llama hold no images; those of gemma3"):
        Scenario(with_images("llama"))
    with pytest.raises(CaseRefused, match=r"prompt\.images is 2; git takes 1 a row"):
        Scenario(with_images("git", images=2))


@settings(max_examples=30, deadline=None, database=None)
@given(prompts(vocabulary=60, images=media_span("llava")))
def test_prompts_draw_no_images_beyond_what_a_type_takes(prompt):
    assert 0 <= prompt.images <= 2
    assert media_span("llama") == (0, 0)


def test_the_cached_family_draws_images_and_several_sequences_for_them():
    drawn = settings(phases=[Phase.generate], max_examples=1000, deadline=None, database=None, derandomize=True)
    assert find(cases("cached", "llava"), lambda c: c.prompt.images == 2 and c.settings.copies == 2, settings=drawn)
    with pytest.raises(NoSuchExample):
        find(cases("special_tokens", "llava"), lambda c: c.prompt.images > 0, settings=settings(drawn, max_examples=50))


def test_several_sequences_for_a_row_keep_the_order_of_its_images():
    case = with_images("llava", 2, seed=5, rows=((3, 4, 5),))
    case = case.replace(settings=Settings(max_new_tokens=2, do_sample=True, returned=2, sample_seed=3))
    assert judge(case, ["cached-matches-recomputed"], Installed()).verdicts["cached-matches-recomputed"].label == "pass"
