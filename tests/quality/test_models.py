"""The models that are drawn, in figures: every type, every cache kind, every side of a window, all of them tiny."""

import statistics
from collections import Counter

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from conformance.architectures import catalogue
from conformance.architectures.capabilities import capabilities
from conformance.architectures.cells import kinds
from conformance.architectures.shrink import make_config
from conformance.build import Scenario
from conformance.case import plain
from conformance.events import KIND, WINDOWS, of_case
from conformance.profiles import exploring
from conformance.strategies import cells
from conformance.strategies.cases import general_cases

pytestmark = [pytest.mark.quality, pytest.mark.slow]
DRAWS, MEASURED = 2_000, 250
FEWEST_OF_A_KIND, SIDE_OF_A_WINDOW = 20, 0.10
MEDIAN_PARAMETERS, MOST_REJECTED = 100_000, 0.02


@pytest.fixture(scope="module")
def drawn():
    """Cases over every type, and the share of attempts that gave none."""
    attempts, found = 0, []

    @seed(5)
    @exploring(DRAWS)
    @given(st.data())
    def draw(data):
        nonlocal attempts
        attempts += 1
        name, kind = data.draw(cells(names="*"))
        found.append(data.draw(general_cases("cached", name, towards=[f"{KIND}{kind}"])))

    draw()
    return found, 1 - len(found) / attempts


def test_hardly_anything_is_thrown_away(drawn):
    found, rejected = drawn
    assert len(found) >= DRAWS
    assert rejected < MOST_REJECTED


def test_every_cache_kind_is_drawn_often_enough(drawn):
    met = Counter(
        kind for case in drawn[0] for kind in kinds(make_config(case.model.architecture, plain(case.model.config)))
    )
    assert min(met.values()) >= FEWEST_OF_A_KIND
    assert {"full", "sliding", "chunked", "convolutional", "recurrent", "indexed", "shared", "hybrid"} <= met.keys()


def test_prompts_fall_on_every_side_of_the_windows(drawn):
    sides = Counter(event for case in drawn[0] for event in of_case(case, Scenario(case)) if event in WINDOWS)
    windowed = sum(count for side, count in sides.items() if side != "window: none")
    assert windowed > DRAWS / 10
    for side in set(WINDOWS) - {"window: none"}:
        assert sides[side] / windowed >= SIDE_OF_A_WINDOW, sides


def test_models_are_tiny(drawn):
    counts = [sum(p.numel() for p in Scenario(case).pristine.parameters()) for case in drawn[0][:MEASURED]]
    assert statistics.median(counts) < MEDIAN_PARAMETERS


def test_every_type_is_reached_within_five_thousand_draws():
    met = set()

    @seed(6)
    @exploring(5_000)
    @given(cells(names="*"))
    def draw(cell):
        met.add(cell[0])

    draw()
    assert met == {name for name in catalogue.names() if capabilities(name).buildable}
