"""Findings on a class that decodes by itself: told of that class, whichever type stands idle beside it in the case."""

from types import SimpleNamespace

import pytest
from toolbox import search_in, small_case

from conformance import scope, search
from conformance.failures import Failure
from conformance.findings import Findings
from conformance.plans.placement import DIFFUSION_GEMMA, PlacementPlan
from conformance.plans.purity import PurityPlan
from conformance.reporting.page import render_page
from conformance.scope import on_model_of, on_plainest, settle
from conformance.signature import Key, kinds_of, traits
from conformance.subjects.installed import Installed
from conformance.verdicts import Difference

WHISPER = "WhisperForConditionalGeneration"
CASES = {
    WHISPER: small_case("qwen3", family="purity", plan=PurityPlan(by_itself=WHISPER, static=True)),
    DIFFUSION_GEMMA: small_case(
        "mistral", family="placement", plan=PlacementPlan(model="diffusion gemma", map="parts", places=("disk",))
    ),
}
CHECKS = {WHISPER: "repeatable", DIFFUSION_GEMMA: "placed-matches-unplaced"}
EACH = pytest.mark.parametrize("name", CASES)


def failure(name):
    found = Difference("values", "logits", "1", "2")
    return Failure(Key.of(CHECKS[name], found), CASES[name], found)


@pytest.fixture
def shown_on(monkeypatch):
    """Makes a failure show on the models that are named, and notes what was tried."""
    names, tried = set(), []

    def same(key, case, _):
        tried.append(case.model_name)
        return Failure(key, case, Difference(key.kind, key.field, "1", "2")) if case.model_name in names else None

    for module in (scope, search):
        monkeypatch.setattr(module, "same_failure", same)
    return SimpleNamespace(names=names, tried=tried)


@EACH
def test_a_finding_on_a_class_is_told_of_that_class(name, shown_on):
    shown_on.names.add(name)
    finding = settle(failure(name), Installed(), repeatable=True)
    assert shown_on.tried == ["llama", name]
    assert (finding.signature.scope, finding.signature.cache) == (name, ())
    assert finding.case.model.architecture == "llama"  # it stands idle: the plainest
    page = render_page(finding, {})
    assert page.startswith(f"# {CHECKS[name]} on {name}: logits (values)\n")
    assert f"| Scope | {name}, which decodes by itself |" in page
    assert f"model     {name}, which decodes by itself, float32\n" in page
    assert "hidden_size" not in page  # a config that says nothing of what ran


@EACH
def test_what_shows_without_the_class_is_told_of_any_type(name, shown_on):
    shown_on.names.update((name, "llama"))
    finding = settle(failure(name), Installed(), repeatable=True)
    assert (finding.signature.scope, finding.case.model_name) == ("any", "llama")
    assert not any(name in need or "diffusion" in need for need in finding.signature.needs)


def test_a_case_on_another_model_has_its_class_or_none():
    for case in CASES.values():
        plain = on_plainest(case, "llama")
        assert (plain.model_name, case.model_name) == ("llama", on_model_of(plain, case).model_name)
        assert on_model_of(case, small_case("gpt2", family=case.family)).model_name == "gpt2"
    tied = small_case(family="placement", plan=PlacementPlan(model="tied blocks"))
    assert on_plainest(tied, "gpt2").plan == tied.plan  # a form of the type's own


def test_what_the_idle_type_says_is_no_need():
    config = {**CASES[WHISPER].model.config, "use_sliding_window": True}
    case = CASES[WHISPER].replace(model=CASES[WHISPER].model.replace(config=config))
    assert traits(case) == (f"by_itself: {WHISPER}", "static")
    assert kinds_of(case) == ()


@EACH
@pytest.mark.parametrize("shown", ["the class", "llama too"])
def test_a_finding_explains_the_same_on_the_class_whatever_stands_idle(name, shown, folder, shown_on):
    shown_on.names.update((name, "llama") if shown == "llama too" else (name,))
    made = search_in(folder, Installed(), family=CASES[name].family)
    made.recorder.close()
    finding = settle(failure(name), Installed(), repeatable=True)
    Findings(folder).add(finding)
    assert made._explained(failure(name)).id == finding.id


def test_what_a_finding_on_a_plain_model_explains_is_tried_with_and_without_the_class(folder, shown_on):
    shown_on.names.add("llama")
    Findings(folder).add(settle(failure(WHISPER), Installed(), repeatable=True))
    made = search_in(folder, Installed(), family="purity")
    made.recorder.close()
    assert made._explained(failure(WHISPER)) is not None
    shown_on.names.clear()
    shown_on.tried.clear()
    assert made._explained(failure(WHISPER)) is None
    assert shown_on.tried == ["llama", WHISPER]
