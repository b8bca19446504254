"""How a run's budget becomes rounds."""

from conformance.options import Options
from conformance.planning import plan

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
