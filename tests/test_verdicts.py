"""Verdicts, choices that are ambiguous, and a difference in words."""

import math

import pytest
import torch

from conformance import rows
from conformance.compare import compare_steps
from conformance.selection_ties import SelectionTies, ambiguous_rows
from conformance.verdicts import Comparison, Difference, Verdict

INF = math.inf
DIFFERENCE = Difference("values", "logits", "1", "2")


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({}, "pass"),
        ({"allowed": ["a"]}, "allowed"),
        ({"allowed": ["a"], "ties": ["t"]}, "tie"),
        ({"allowed": ["a"], "ties": ["t"], "differences": [DIFFERENCE]}, "fail"),
        ({"differences": [DIFFERENCE], "not_applicable": "why"}, "fail"),
        ({"ties": ["t"], "not_applicable": "why"}, "not-applicable"),
    ],
)
def test_exactly_one_verdict_follows(parts, status):
    assert Verdict.from_comparison(Comparison(**parts)).status == status


def test_comparisons_add_up():
    total = Comparison.of(DIFFERENCE)
    total += Comparison(ties=["t"], allowed=["a"], not_applicable="why")
    assert total == Comparison([DIFFERENCE], ["t"], ["a"], "why")


@pytest.mark.parametrize(
    ("scores", "k", "ties"),
    [
        ((3.0, 2.0, 1.0), 2, 0),
        ((3.0, 2.0, 2.0), 2, 1),
        ((2.0, 2.0, 1.0), 2, 0),
        ((0.0, 0.0, 0.0), 1, 1),
        ((3.0, 2.0, 2.0 - 1e-6), 2, 1),
        ((3.0, 2.0, 1.99), 2, 0),
        ((3.0, -INF, -INF), 1, 0),
        ((3.0, -INF, -INF), 2, 0),
        ((3.0, -1e38, -1e38), 2, 0),
        ((1.0, 1.0), 2, 0),
        ((1.0, 1.0), 5, 0),
        ((1.0, 1.0), 0, 0),
    ],
)
def test_a_selection_is_ambiguous_when_rounding_could_turn_it(scores, k, ties):
    assert ambiguous_rows(torch.tensor(scores), k) == ties


def test_rows_of_a_selection_are_counted_one_by_one():
    assert ambiguous_rows(torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), 1) == 2


def test_selections_are_seen_wherever_they_are_made():
    scores = torch.tensor((1.0, 1.0, 0.0))
    with SelectionTies() as ties:
        torch.topk(scores, 1)
        scores.topk(k=1)
        torch.topk(torch.tensor([3, 3, 1]), 1)
        scores.topk(2)
    assert ties.count == 2
    torch.topk(scores, 1)
    assert ties.count == 2


@pytest.mark.parametrize(
    ("count", "said"),
    [(3, "not finite at [0, 1, 2]"), (8, "[0, 1, 2, 3, 4, 5, 6, 7]"), (9, "[0, 1, 2, 3, 4, 5, 6, 7, ...] (9 in all)")],
)
def test_a_list_of_places_shows_that_it_is_cut(count, said):
    got = torch.tensor([math.nan] * count + [1.0])
    (difference,) = compare_steps("logits", [got], [torch.ones(count + 1)], lambda _: 0.0).differences
    assert difference.got.endswith(said)
    assert difference.expected.endswith("not finite at []")


def test_a_difference_in_words_says_a_crash_once():
    assert str(Difference("crash", "crash", "no exception", "KeyError")) == "crash: expected no exception, got KeyError"
    assert str(Difference("values", "logits", "1", "2", "step 1")) == "logits (values) at step 1: expected 1, got 2"


def test_scores_far_below_the_best_may_be_held_to_be_alike():
    steps = [torch.tensor([0.0, -47.38, float("-inf"), -9.0]), torch.tensor([0.0, -47.39, float("-inf"), -9.0])]
    cut = rows.cut(steps, 10.0)
    assert torch.equal(*cut)
    assert cut[0].tolist() == [0.0, -10.0, float("-inf"), -9.0]
    assert rows.cut(steps, float("inf")) == steps
