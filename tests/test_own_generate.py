"""Models that decode by a `generate` of their own: purity and placement of their seeded call."""

import random

import pytest
import torch
import transformers
from toolbox import CHECKS_OF, small_case

from conformance import upstream
from conformance.architectures import catalogue
from conformance.architectures.own_generate import own_generate, recipes, why_not
from conformance.case import parse_case
from conformance.cli.listing import by_itself
from conformance.errors import CaseRefused
from conformance.judge import judge
from conformance.plans.placement import PlacementPlan
from conformance.plans.purity import PurityPlan
from conformance.snapshots import module_state
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

SOME = ("SeamlessM4TForTextToText", "BlipForQuestionAnswering", "WhisperForConditionalGeneration")
TEXT = SOME[0]
PURE = ("nothing-of-the-callers-changed", "repeatable")


def verdicts(family, plan, subject=None):
    case = small_case(family=family, plan=plan)
    return judge(case, CHECKS_OF[family], subject or Installed()).verdicts


def pure(name, subject=None):
    found = verdicts("purity", PurityPlan(by_itself=name), subject)
    return {check: found[check].status for check in PURE}


def placed(name):
    plan = PlacementPlan(by_itself=name, loader="dispatch_model", map="parts", places=("cpu", "disk"))
    return verdicts("placement", plan)["placed-matches-unplaced"].status


def classes():
    """The classes of the installed release that decode by a `generate` of their own."""
    return {name for found in own_generate().values() for name in found}


def test_every_recipe_is_of_a_class_that_decodes_by_itself():
    lacking = sorted(name for name in recipes() if not hasattr(transformers, name))
    assert recipes().keys() - set(lacking) <= classes()
    if lacking:
        pytest.skip(f"not applicable to all of them: this release has no {', '.join(lacking)}")


def test_every_class_has_a_recipe_or_a_reason():
    in_a_mapping = {catalogue.get(name).class_name for name in catalogue.names()}
    for name in classes() - in_a_mapping - recipes().keys():
        assert "nobody has looked" not in why_not(name), name
    assert len(recipes()) >= 15


def test_the_listing_says_which_are_drawn_and_why_others_are_not():
    entry = by_itself("blip", ["BlipForConditionalGeneration", "SpeechT5ForTextToSpeech"])
    assert "BlipForConditionalGeneration: in some cases of `purity` and `placement`" in entry["reason"]
    assert "SpeechT5ForTextToSpeech: returns a spectrogram" in entry["reason"]


@pytest.mark.parametrize("name", SOME)
def test_a_right_model_passes(name):
    assert pure(name) == dict.fromkeys(PURE, "pass")
    assert placed(name) == "pass"


def broken(monkeypatch, generate):
    """The class with another `generate`, which is given the right one."""
    right = transformers.SeamlessM4TForTextToText.generate
    monkeypatch.setattr(
        transformers.SeamlessM4TForTextToText, "generate", lambda self, **inputs: generate(right, self, **inputs)
    )


def test_a_draw_that_no_seed_reaches_is_not_repeatable(monkeypatch):
    draws = random.Random(1)
    broken(monkeypatch, lambda right, self, **inputs: right(self, **inputs) + draws.randrange(1, 9))
    assert pure(TEXT) == {"repeatable": "fail", "nothing-of-the-callers-changed": "pass"}


def test_inputs_that_are_changed_in_place_are_told(monkeypatch):
    def generate(right, self, **inputs):
        found = right(self, **inputs)
        inputs["input_ids"][0, -1] = 0
        return found

    broken(monkeypatch, generate)
    assert pure(TEXT)["nothing-of-the-callers-changed"] == "fail"


def test_a_model_that_says_something_else_once_it_is_placed_is_told(monkeypatch):
    def generate(right, self, **inputs):
        found = right(self, **inputs)
        return found + 1 if getattr(self, "hf_device_map", None) else found

    broken(monkeypatch, generate)
    assert placed(TEXT) == "fail"


def test_another_subject_has_no_part_in_it():
    assert pure(TEXT, Reference()) == dict.fromkeys(PURE, "not-applicable")


def test_a_class_that_the_release_lacks_is_not_applicable(monkeypatch):
    def missing(name):
        raise AttributeError(name)

    monkeypatch.setattr(upstream, "model_class", missing)
    assert pure(TEXT) == dict.fromkeys(PURE, "not-applicable")


def test_an_unknown_class_is_refused():
    with pytest.raises(CaseRefused, match=r"plan\.by_itself: .*unknown class .* 'LasrForCT'; did you mean LasrForCTC"):
        parse_case('{"family": "purity", "plan": {"by_itself": "LasrForCT"}}')


def test_a_property_that_is_computed_once_is_no_state():
    from functools import cached_property

    class Module(torch.nn.Module):
        @cached_property
        def pad(self):
            return 3

    module = Module()
    before = module_state(module)
    assert module.pad == 3
    assert module_state(module) == before
    module.kept = 4
    assert module_state(module) != before
