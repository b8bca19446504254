"""Registering checks, and what is registered."""

import ast
import re
from pathlib import Path

import pytest

import conformance
from conformance import registry
from conformance.errors import BadInput
from conformance.globs import select, select_checks
from conformance.listing import families_of_checks, nightly_families
from conformance.registry import Family, applies, check, family
from conformance.reporting import pieces
from conformance.verdicts import Comparison

LOOSE = Family("loose")


@pytest.fixture(autouse=True)
def _loaded():
    registry.load()


def test_a_name_is_given_once():
    with pytest.raises(TypeError, match=r"'repeatable' is registered already, in conformance\.checks\.purity"):

        @check(LOOSE)
        def repeatable(_):
            """Another rule."""

    with pytest.raises(TypeError, match="the family 'cached' is registered already"):
        family("cached")


def test_a_check_without_a_document_is_refused():
    with pytest.raises(TypeError, match="'says-nothing' needs a docstring"):

        @check(LOOSE)
        def says_nothing(_):
            return Comparison()

    assert "says-nothing" not in registry.checks()


def test_a_typo_lists_the_closest_valid_names():
    with pytest.raises(BadInput, match=r"unknown check 'repeatible'; did you mean repeatable"):
        registry.get("repeatible")
    with pytest.raises(BadInput, match=r"valid: .*cached-matches-recomputed, "):
        registry.get("zzz")


def test_globs_select_and_a_glob_of_nothing_is_refused():
    names = families_of_checks()
    assert select(None, names, "check") == tuple(names)
    assert select("padded*-alone, repeat*", names, "check") == ("padded-row-matches-alone", "repeatable")
    with pytest.raises(BadInput, match="unknown check 'static-matches'; did you mean static-matches-dynamic"):
        select("repeatable,static-matches", names, "check")


def test_checks_are_selected_by_their_family_too():
    families = families_of_checks()
    assert select_checks("family:sampling,repeat*", families) == (
        "repeatable",
        "sampling-assisted-keeps-the-distribution",
    )
    assert select_checks("*", families) == tuple(families)
    with pytest.raises(BadInput, match="unknown check 'family:placements'; did you mean family:placement"):
        select_checks("family:placements", families)


def test_the_listing_read_from_source_equals_the_registry():
    registered = {name: its.family for name, its in registry.checks().items()}
    assert families_of_checks() == registered
    assert list(families_of_checks()) == list(registered)
    assert nightly_families() == {name for name, its in registry.families().items() if its.nightly} == {"sampling"}


def test_every_lower_rung_is_a_check_and_no_check_stands_on_itself():
    for name, its in registry.checks().items():
        assert set(its.stands_on) <= set(registry.checks())
        assert name not in registry.below(name)


def test_lower_rungs_come_lowest_first():
    assert registry.below("static-matches-dynamic") == ("cached-matches-recomputed", "padded-row-matches-alone")
    assert registry.below("cached-matches-recomputed") == ()


def test_a_rung_is_of_the_same_family_or_of_one_that_can_judge_any_case():
    """Otherwise it would be asked about a case that has another plan."""
    for name, its in registry.checks().items():
        assert {registry.get(lower).family for lower in registry.below(name)} <= {its.family, "cached", "purity"}


def patterns_of_strings():
    """What strings of the package can be, but for those that declare families: f-strings are anything in between."""
    found = set()
    for path in Path(conformance.__file__).parent.rglob("*.py"):
        todo = [ast.parse(path.read_text(encoding="utf-8"))]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.JoinedStr):
                parts = [re.escape(v.value) if isinstance(v, ast.Constant) else ".+" for v in node.values]
                found.add("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(re.escape(node.value))
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "family"):
                todo += ast.iter_child_nodes(node)
    return re.compile("|".join(pattern for pattern in found if re.search("[a-z]", pattern)))


def test_floors_are_shares_of_events_that_something_reports():
    said = patterns_of_strings()
    for its in registry.families().values():
        assert set(its.floors) <= set(its.reachable)
        assert set(its.promised) <= set(its.reachable)
        assert not [event for event in (*its.reachable, *its.promised.values()) if not said.fullmatch(event)]
        assert all(0 < floor < 1 for floor in its.floors.values())


def test_every_check_has_a_family_and_a_document_of_its_own_and_its_script_is_a_body():
    documents = [its.document for its in registry.checks().values()]
    assert len(set(documents)) == len(documents)
    for its in registry.checks().values():
        assert its.family in registry.families()
        assert its.document.strip().splitlines()[0].endswith("."), "the listing shows the first line, whole"
        assert its.script in ("", *pieces.names())


def test_guards_give_the_first_reason_that_holds():
    @applies("no rows", lambda runs: runs > 0)
    @applies("too many rows", lambda runs: runs < 3)
    def rule(_):
        """A rule."""

    made = registry.Check("rule", "loose", rule, tuple(rule.guards), (), "")
    assert [made.not_applicable(rows) for rows in (0, 1, 3)] == ["no rows", None, "too many rows"]
