"""How a run's budget becomes rounds."""

import pytest

from conformance.options import FEWEST_IN_A_ROUND, ROUND_EXAMPLES, Options
from conformance.planning import plan

MANY = Options(checks=("repeatable", "cached-matches-recomputed"), architectures=("llama", "gpt2", "mamba"))


@pytest.mark.parametrize(
    ("budget", "workers", "items", "examples"),
    [(None, 1, 400, ROUND_EXAMPLES), (60, 2, 400, FEWEST_IN_A_ROUND), (1200, 2, 480, 10), (1200, 2, 6, ROUND_EXAMPLES)],
)
def test_a_round_is_as_long_as_lets_every_item_have_its_first(budget, workers, items, examples):
    assert MANY.replace(budget=budget, workers=workers).spread(items).in_a_round == examples


def test_rounds_are_the_major_order():
    items = plan(MANY.replace(budget=600.0, workers=2))
    assert [item.round for item in items] == sorted(item.round for item in items)
    assert len({(item.family, item.architecture) for item in items if item.round == 1}) == 6
    assert items[-1].round > 1


def test_a_number_of_examples_is_one_round_of_them():
    assert {item.round for item in plan(MANY.replace(examples=7))} == {1}
