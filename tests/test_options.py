"""How a run's budget becomes rounds."""

import argparse
import time
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from conformance import plugin
from conformance.cli import app
from conformance.cli import run as run_module
from conformance.errors import BadInput
from conformance.listing import families_of_checks, nightly_families
from conformance.options import Options
from conformance.planning import plan
from conformance.selection import make_options

MANY = Options(checks=("repeatable", "cached-matches-recomputed"), architectures=("llama", "gpt2", "mamba"))


def test_an_item_has_its_share_of_a_budget():
    assert MANY.spread(400).share is None
    assert MANY.replace(budget=1200.0, workers=2).spread(480).share == 2.5


def test_a_run_that_is_late_leaves_each_of_its_items_less():
    run = MANY.replace(budget=1200.0, workers=2).spread(480)
    assert run.share_of_the_rest(480) == run.share  # the budget does not run yet
    late = run.replace(deadline=time.time() + 100)
    assert late.share_of_the_rest(480) == pytest.approx(100 * 2 / 480 / 2, rel=0.01)
    assert late.share_of_the_rest(1) == late.share_of_the_rest(0) == run.share
    assert run.replace(deadline=time.time() - 1).share_of_the_rest(480) == 0


def test_the_items_of_a_round_know_how_many_have_not_begun():
    items = plan(MANY.replace(budget=600.0, workers=2))
    assert [item.left for item in items[:7]] == [6, 5, 4, 3, 2, 1, 6]


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


TWICE = ["checks=repeatable", "checks=cached-*,crop-*", "architectures=llama", "architectures=t5"]
BOTH = {"checks": "repeatable,cached-*,crop-*", "architectures": "llama,t5"}


def test_a_selection_that_is_given_twice_is_all_of_it_on_the_command_line(monkeypatch):
    given = {}

    def stop(**options):
        given.update(options)
        raise BadInput("far enough")

    monkeypatch.setattr(run_module, "make_options", stop)
    CliRunner().invoke(app, ["run", *(f"--{word}" for word in TWICE)])
    assert {name: given[name] for name in BOTH} == BOTH


def test_a_selection_that_is_given_twice_is_all_of_it_for_pytest(monkeypatch):
    parser = argparse.ArgumentParser()
    group = SimpleNamespace(addoption=parser.add_argument)
    plugin.pytest_addoption(SimpleNamespace(getgroup=lambda *_: group))
    told = vars(parser.parse_args([f"--conformance-{word}" for word in TWICE]))
    told_of = {"--" + name.replace("_", "-"): value for name, value in told.items()}
    config = SimpleNamespace(getoption=told_of.get, option=SimpleNamespace())
    monkeypatch.setattr("conformance.selection.make_options", lambda **options: options)
    given = plugin._parse(config)
    assert {name: given[name] for name in BOTH} == BOTH
