"""How a run's budget becomes rounds."""

import pytest

from conformance.listing import families_of_checks, nightly_families
from conformance.options import Options
from conformance.planning import plan
from conformance.selection import make_options

MANY = Options(checks=("repeatable", "cached-matches-recomputed"), architectures=("llama", "gpt2", "mamba"))


def test_an_item_has_its_share_of_a_budget():
    assert MANY.spread(400).share is None
    assert MANY.replace(budget=1200.0, workers=2).spread(480).share == 2.5


def test_rounds_are_the_major_order():
    items = plan(MANY.replace(budget=600.0, workers=2))
    assert [item.round for item in items] == sorted(item.round for item in items)
    assert len({(item.family, item.architecture) for item in items if item.round == 1}) == 6
    assert items[-1].round > 1


def test_a_number_of_examples_is_one_round_of_them():
    assert {item.round for item in plan(MANY.replace(examples=7))} == {1}


@pytest.mark.parametrize(
    ("given", "nightly"),
    [
        ({}, False),
        ({"profile": "nightly"}, True),
        ({"checks": "sampling*"}, True),
        ({"checks": "sampling*", "profile": "nightly"}, True),
        ({"checks": "cached*", "profile": "nightly"}, False),
        ({"checks": "*"}, True),
    ],
)
def test_what_takes_long_runs_at_night_or_by_its_name(given, nightly, tmp_path):
    options = make_options(report=str(tmp_path / "report"), **given)
    assert bool(nightly_families() & set(options.families())) == nightly
    if not given.get("checks"):
        left_out = set(families_of_checks()) - set(options.checks)
        assert {families_of_checks()[check] for check in left_out} == (set() if nightly else nightly_families())
