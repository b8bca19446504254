"""Cases: frozen, bounded, JSON in and out, and refused with the field's name."""

import copy
import json
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toolbox import CHECKS_OF, small_case

from conformance.case import (
    LARGEST_CASE_FILE,
    SCHEMA_VERSION,
    Case,
    FrozenDict,
    ModelSpec,
    Plan,
    Prompt,
    Settings,
    known_plans,
    parse_case,
    read_case,
)
from conformance.errors import CaseRefused
from conformance.plans.cached import CachedPlan
from conformance.signature import traits
from conformance.strategies.cases import cases

SOME = ("llama", "mistral", "gemma2", "lfm2", "t5", "qwen3_next")
drawn = st.sampled_from(SOME).flatmap(
    lambda name: st.sampled_from(list(CHECKS_OF)).flatmap(lambda family: cases(family, name))
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn)
def test_a_drawn_case_survives_json_bit_for_bit(case):
    text = case.to_json()
    again = parse_case(text)
    assert again == case
    assert hash(again) == hash(case)
    assert again.to_json() == text
    assert "\n" not in text
    assert "\n" not in repr(case)
    assert Case.model_validate(json.loads(json.dumps(case.to_dict()))) == case


def test_defaults_are_the_simplest_case():
    case = Case()
    assert traits(case) == ()
    assert case.prompt.rows == ((1,),)
    assert case.settings.max_new_tokens == 1
    assert not case.model.config
    assert case.plan == CachedPlan()
    assert parse_case("{}") == case


def test_an_older_document_without_the_newer_fields_is_read():
    assert parse_case('{"schema_version": 1, "family": "purity"}').family == "purity"


def document(**changes):
    """The document of a small case, with values at dotted paths changed."""
    made = small_case(plan={"continuation": (1, 2), "groups": (2,)}).to_dict()
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = made
        for parent in parents:
            place = place[parent]
        place[last] = value
    return made


WRONG = {
    "unknown field": (document(colour="red"), "colour"),
    "unknown field of the model": (document(model__colour="red"), "model.colour"),
    "unknown field of the settings": (document(settings__colour="red"), "settings.colour"),
    "unknown field of the plan": (document(plan__colour="red"), " plan.colour: "),
    "newer schema": (document(schema_version=SCHEMA_VERSION + 1), "schema_version"),
    "schema of no kind": (document(schema_version="one"), "schema_version"),
    "unknown family": (document(family="cach"), "family"),
    "family of another type": (document(family=3), "family"),
    "prompt too long": (document(prompt__rows=[[1] * 65]), "prompt.rows.0"),
    "too many rows": (document(prompt__rows=[[1]] * 9), "prompt.rows"),
    "no rows": (document(prompt__rows=[]), "prompt.rows"),
    "empty row": (document(prompt__rows=[[]]), "prompt.rows.0"),
    "negative token": (document(prompt__rows=[[-1]]), "prompt.rows.0.0"),
    "huge token": (document(prompt__rows=[[10**9]]), "prompt.rows.0.0"),
    "token that is a text": (document(prompt__rows=[["1"]]), "prompt.rows.0.0"),
    "token that is a boolean": (document(prompt__rows=[[True]]), "prompt.rows.0.0"),
    "too many new tokens": (document(settings__max_new_tokens=65), "settings.max_new_tokens"),
    "no new tokens": (document(settings__max_new_tokens=0), "settings.max_new_tokens"),
    "number as text": (document(settings__max_new_tokens="4"), "settings.max_new_tokens"),
    "not a number": (document(settings__repetition_penalty=float("nan")), "settings.repetition_penalty"),
    "infinite": (document(model__init_scale=float("inf")), "model.init_scale"),
    "unknown dtype": (document(model__dtype="bfloat16"), "model.dtype"),
    "unknown kernel": (document(model__attention="flash"), "model.attention"),
    "negative seed": (document(model__weight_seed=-1), "model.weight_seed"),
    "config that is a list": (document(model__config=[1]), "model.config"),
    "config number too large": (document(model__config={"hidden_size": 10**6}), "hidden_size"),
    "config number far too negative": (document(model__config={"hidden_size": -(10**6)}), "hidden_size"),
    "config number that is none": (document(model__config={"theta": float("nan")}), "theta"),
    "config number without end": (document(model__config={"theta": float("inf")}), "theta"),
    "number beyond any float": (document(settings__repetition_penalty=10**400), "settings.repetition_penalty"),
    "config number beyond any float": (document(model__config={"theta": 10**400}), "theta"),
    "config text too long": (document(model__config={"activation": "x" * 65}), "activation"),
    "config list too long": (document(model__config={"layer_types": ["full"] * 65}), "layer_types"),
    "config nested too deeply": (document(model__config={"a": [[[[1]]]]}), "a is nested too deeply"),
    "huge plan": (document(plan__continuation=[1] * 33), " plan.continuation: "),
    "group of nothing": (document(plan__groups=[0]), " plan.groups.0: "),
    "plan of another type": (
        document(plan=[1, 2]),
        " plan: Input should be a valid dictionary or instance of CachedPlan",
    ),
    "long name": (document(model__architecture="x" * 65), "model.architecture"),
    "long fingerprint": (document(fingerprint="x" * 65), "fingerprint"),
}


@pytest.mark.parametrize(("wrong", "named"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_in_one_line_that_names_it(wrong, named):
    with pytest.raises(CaseRefused) as refusal:
        parse_case(json.dumps(wrong), "given.json")
    message = str(refusal.value)
    assert message.startswith("given.json")
    assert named in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("llama", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"a":' * 100_000, "is not JSON"),
        ("[1]", "holds a list"),
        ("null", "holds a NoneType"),
        ('"case"', "holds a str"),
        ("1" * 5000, "is not JSON"),
        ('{"family": "cached", "family": "purity"}', "the key 'family' is there more than once"),
        ('{"model": {"config": {"a": 1, "a": 1}}}', "the key 'a' is there more than once"),
    ],
    ids=[
        *("empty", "cut", "word", "deep lists", "deep objects", "list", "null", "text", "huge number"),
        *("key twice", "inner key twice"),
    ],
)
def test_what_is_not_a_case_is_refused(text, said):
    with pytest.raises(CaseRefused, match=said):
        parse_case(text)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    huge, binary = tmp_path / "huge.json", tmp_path / "binary.json"
    huge.write_text(" " * (LARGEST_CASE_FILE + 1))
    binary.write_bytes(b"\xff\xfe{}")
    for path, said in (
        (huge, "larger than"),
        (binary, "cannot read"),
        (tmp_path / "none.json", "cannot read"),
        (tmp_path, "cannot read"),
    ):
        with pytest.raises(CaseRefused, match=said) as refusal:
            read_case(path)
        assert str(path) in str(refusal.value)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "case.json"
    path.write_text(small_case().to_json())
    assert read_case(path) == small_case()


SUSPECT = ("__import__('os').system('touch ran')", "!!python/object/apply:os.system", "{{7*7}}", "../../etc/passwd")


@pytest.mark.parametrize("text", SUSPECT)
def test_a_text_in_a_case_stays_a_text(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = parse_case(json.dumps({"model": {"architecture": text, "config": {"a": text}}}))
    assert case.model.config["a"] == text
    assert not list(tmp_path.iterdir())


def test_a_case_cannot_be_changed():
    case = small_case(config={"layers": [1, 2], "rope": {"theta": 1.0}})
    for change in (
        lambda: setattr(case, "family", "purity"),
        lambda: setattr(case.settings, "eos", (1,)),
        lambda: case.model.config.__setitem__("a", 1),
        lambda: case.model.config.update(a=1),
        lambda: case.model.config["rope"].pop("theta"),
        lambda: case.prompt.rows.append((1,)),
        lambda: case.model.config["layers"].append(3),
    ):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            change()


def test_what_a_caller_passed_is_not_kept():
    config, rows = {"a": [1]}, [[1, 2]]
    case = Case(model=ModelSpec(config=config), prompt=Prompt(rows=rows))
    config["a"].append(2)
    rows[0].append(3)
    assert case.model.config["a"] == (1,)
    assert case.prompt.rows == ((1, 2),)


def test_cases_are_equal_by_value():
    assert len({small_case(), small_case(), small_case(eos=(3,))}) == 2
    assert small_case(config={"a": 1, "b": 2}) == small_case(config={"b": 2, "a": 1})
    assert hash(small_case(config={"a": 1, "b": 2})) == hash(small_case(config={"b": 2, "a": 1}))


def test_cases_can_be_copied_and_pickled():
    case = small_case(config={"rope": {"theta": 1.0}})
    for again in (copy.deepcopy(case), copy.copy(case), pickle.loads(pickle.dumps(case))):
        assert again == case
    assert isinstance(pickle.loads(pickle.dumps(case)).model.config, FrozenDict)


def test_a_copy_with_other_parts_is_validated():
    assert small_case().replace(prompt=Prompt(rows=((9,),))).prompt.rows == ((9,),)
    with pytest.raises(ValueError, match="max_new_tokens"):
        Settings().replace(max_new_tokens=0)
    with pytest.raises(ValueError, match="nothing"):
        Settings().replace(nothing=0)


def test_every_family_of_checks_has_a_plan_and_another_ones_is_refused():
    assert set(CHECKS_OF) <= set(known_plans())
    with pytest.raises(ValueError, match="continuation"):
        Case(family="purity", plan={"continuation": (1,)})


def test_a_family_has_one_plan():
    with pytest.raises(TypeError, match="has a plan already: CachedPlan"):
        type("Another", (Plan,), {}, family="cached")


@pytest.mark.parametrize(
    ("continuation", "groups", "sizes"),
    [
        ((), (), []),
        ((1,), (), [1]),
        ((1, 2, 3), (2,), [2, 1]),
        ((1, 2, 3), (2, 4), [2, 1]),
        ((1, 2), (1, 1, 5), [1, 1]),
        ((), (3,), []),
    ],
)
def test_groups_cover_the_continuation_exactly(continuation, groups, sizes):
    assert CachedPlan(continuation=continuation, groups=groups).sizes() == sizes
