"""The documents speak of what there is."""

import json
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from conformance import registry, upstream
from conformance.architectures.apply import FREE, LAYERS, SIZE, VOCABULARY
from conformance.architectures.roles import formula_of
from conformance.architectures.said_elsewhere import FIELDS
from conformance.build import Scenario
from conformance.case import MAX_CONFIG_NUMBER, Record, Settings, parse_case
from conformance.case.plan import known_plans
from conformance.verdicts import KINDS, Difference

ROOT = Path(__file__).parents[1]
SHOWN_FOR = re.search(r"(?m)^transformers==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"))[1].strip()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("name", registry.checks())
def test_every_check_has_a_page_that_the_list_names(name):
    page = ROOT / "docs" / "checks" / f"{name}.md"
    assert page.read_text(encoding="utf-8").startswith(f"# {name}\n")
    assert f"({name}.md)" in (page.parent / "README.md").read_text(encoding="utf-8")


def test_every_setting_of_a_case_is_in_its_reference():
    text = (ROOT / "docs" / "reference" / "case.md").read_text(encoding="utf-8")
    assert not [name for name in Settings.model_fields if f"settings.{name}`" not in text]


def values_and_fields(annotation, values, records):
    """Collects the words that a field may say, and the records in it."""
    if get_origin(annotation) is Literal:
        values.update(value for value in get_args(annotation) if isinstance(value, str) and value)
    elif isinstance(annotation, type) and issubclass(annotation, Record) and annotation not in records:
        records.append(annotation)
        for field in annotation.model_fields.values():
            values_and_fields(field.annotation, values, records)
    for argument in get_args(annotation):
        values_and_fields(argument, values, records)


@pytest.mark.parametrize("family", known_plans())
def test_every_field_of_a_plan_and_every_word_it_may_say_is_in_its_section(family):
    text = (ROOT / "docs" / "reference" / "case.md").read_text(encoding="utf-8")
    section = text[text.index(f"### `{family}`\n") + 1 :].split("\n##")[0]
    values, records = set(), []
    values_and_fields(known_plans()[family], values, records)
    fields = [name for record in records for name in record.model_fields]
    assert [name for name in fields if not re.search(rf"`(plan\.)?{name}`", section)] == []
    assert sorted(value for value in values if f"`{value}`" not in section) == []


def test_the_bounds_of_a_config_are_those_that_are_told():
    text = (ROOT / "docs" / "reference" / "case.md").read_text(encoding="utf-8")
    section = text[text.index("## `model.config`") :].split("\n## ")[0]
    told = {}
    for names, least, most in re.findall(r"(?m)^\| (.*?`.*?) \| (\d+) \| (\d+) \|$", section):
        told |= dict.fromkeys(re.findall(r"`(\w+)`", names), (int(least), int(most)))
    kinds = {"layers": LAYERS, "vocabulary": VOCABULARY, "chunk": SIZE}
    for name, bounds in told.items():
        formula = formula_of(name)
        assert formula, name
        most = kinds.get(formula, MAX_CONFIG_NUMBER if formula in FREE else SIZE)
        assert bounds == (0 if formula == "1" else 1, most), name
    assert {formula_of(name) for name in told} >= {"layers", "vocabulary", "hidden", "heads", "experts", "chunk", "1"}
    elsewhere = [name.removeprefix("settings.") for names in FIELDS.values() for name in names]
    assert [name for name in elsewhere if not name.startswith("_") and f"`{name}`" not in section] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_cases_shown_as_json_can_be_replayed(page):
    for block in re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        if "family" in json.loads(block):
            case = parse_case(block)
            if upstream.versions()["transformers"] == SHOWN_FOR:  # other releases may lack the type, or an attribute
                Scenario(case).refuse_large_model()


def test_every_kind_of_difference_is_told_of():
    page = (ROOT / "docs" / "reference" / "summary.md").read_text(encoding="utf-8")
    assert [kind for kind in sorted(KINDS) if f"`{kind}`" not in page] == []


def test_a_difference_of_no_kind_is_refused():
    with pytest.raises(ValueError, match="no kind of difference: 'other'"):
        Difference("other", "logits", "1", "2")
