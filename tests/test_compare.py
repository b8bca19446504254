"""The rules of comparison."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conformance.compare import (
    BOUND,
    ROUNDING_FACTOR,
    compare_steps,
    compare_tokens,
    deviation,
    scale_of,
)
from conformance.verdicts import Comparison

INF, NAN = math.inf, math.nan


def vector(*values):
    return torch.tensor(values)


def silent(_):
    return 0.0


def never(_):
    raise AssertionError("noise was asked for although the step is within the bound")


@pytest.mark.parametrize(
    ("got", "expected", "kind"),
    [
        ((1.0, 2.0), (1.0, 2.0), None),
        ((1.0, 2.0), (1.0, 2.5), "values"),
        ((1.0, -INF), (1.0, -INF), None),
        ((1.0, -INF), (1.0, 2.0), "infinity"),
        ((1.0, 2.0), (1.0, -INF), "infinity"),
        ((1.0, INF), (1.0, -INF), "infinity"),
        ((NAN, 2.0), (1.0, 2.0), "nan"),
        ((1.0, 2.0), (NAN, 2.0), "nan"),
        ((NAN, 2.0), (NAN, 2.0), None),
        ((NAN, 2.0), (NAN, 3.0), "values"),
        ((NAN, 2.0), (2.0, NAN), "nan"),
        ((NAN, -INF), (NAN, -INF), None),
        ((NAN, -INF), (-INF, NAN), "nan"),
        ((-INF, -INF), (-INF, -INF), None),
        ((NAN, NAN), (NAN, NAN), None),
        ((-INF, 1.0), (-INF, 1.5), "values"),
    ],
)
def test_deviation(got, expected, kind):
    found = deviation(vector(*got), vector(*expected))
    assert (found.kind if found else None) == kind


def test_deviation_says_how_far_and_where():
    found = deviation(vector(-INF, 1.0, 5.0, 2.0), vector(-INF, 1.25, 3.0, 2.0))
    assert (found.size, found.index) == (2.0, 2)


def test_another_shape_is_a_difference_even_where_it_would_broadcast():
    assert deviation(vector(1.0), vector(1.0, 1.0)).kind == "shape"
    assert deviation(torch.ones(2, 1), torch.ones(1, 2)).kind == "shape"


finite = st.floats(-1e3, 1e3, width=32)
anything = finite | st.sampled_from([INF, -INF, NAN])
vectors = st.lists(anything, min_size=1, max_size=6)


@given(vectors)
def test_a_vector_never_departs_from_itself(values):
    assert deviation(vector(*values), vector(*values)) is None


@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=6))
def test_departing_goes_both_ways(pairs):
    one, other = (vector(*side) for side in zip(*pairs, strict=True))
    there, back = deviation(one, other), deviation(other, one)
    assert (there and (there.kind, there.size)) == (back and (back.kind, back.size))


@given(vectors, vectors)
def test_what_departs_is_never_let_through_because_of_a_nan(got, expected):
    result = compare_steps("logits", [vector(*got)], [vector(*expected)], silent)
    if [math.isnan(v) for v in got] != [math.isnan(v) for v in expected]:
        assert result.differences[0].kind in ("nan", "shape")


def test_the_scale_is_the_largest_finite_value_of_all_steps():
    assert scale_of([vector(-INF, 3.0), vector(-7.0, NAN)]) == 7.0
    assert scale_of([vector(-INF, NAN)]) == 1.0
    assert scale_of([]) == 1.0


@pytest.mark.parametrize(
    ("factor", "differs"), [(0.0, False), (0.5, False), (0.99, False), (1.01, True), (100.0, True)]
)
def test_the_bound_is_relative_to_the_largest_logit(factor, differs):
    expected = torch.tensor([0.0, -200.0], dtype=torch.float64)
    got = expected + torch.tensor([factor * BOUND * 200.0, 0.0], dtype=torch.float64)
    assert bool(compare_steps("logits", [got], [expected], silent).differences) == differs


def test_noise_is_asked_for_only_beyond_the_bound():
    assert not compare_steps("logits", [vector(1.0, 1.0 + BOUND / 2)], [vector(1.0, 1.0)], never).differences


def test_beyond_the_bound_and_within_the_models_own_response_is_a_tie():
    got, expected = [vector(1.0, 1.1)], [vector(1.0, 1.0)]
    tie = compare_steps("logits", got, expected, lambda _: 0.1001 / ROUNDING_FACTOR)
    assert not tie.differences
    assert len(tie.ties) == 1
    assert "logits at step 0" in tie.ties[0]
    assert compare_steps("logits", got, expected, lambda _: 0.09 / ROUNDING_FACTOR).differences


def test_an_infinity_or_a_nan_is_never_a_tie():
    for bad in (-INF, NAN):
        assert compare_steps("scores", [vector(1.0, bad)], [vector(1.0, 1.0)], lambda _: INF).differences


def test_the_first_differing_step_is_named_and_later_ones_follow_from_it():
    steps = [vector(1.0, 1.0)] * 3
    got = [steps[0], vector(1.0, 2.0), vector(NAN, 1.0)]
    found = compare_steps("scores", got, steps, silent, "row 1 ")
    (difference,) = found.differences
    assert (difference.kind, difference.field, difference.where) == ("values", "scores", "row 1 step 1")
    assert "at index 1" in difference.expected


def test_steps_after_a_tie_are_compared():
    steps = [vector(1.0, 1.0)] * 2
    found = compare_steps(
        "logits", [vector(1.0, 1.1), vector(1.0, -INF)], steps, lambda step: 1.0 if step == 0 else 0.0
    )
    assert [d.where for d in found.differences] == ["step 1"]
    assert len(found.ties) == 1


def test_another_number_of_steps_is_a_difference_of_its_own():
    (difference,) = compare_steps("logits", [vector(1.0)], [vector(1.0)] * 2, silent).differences
    assert (difference.kind, difference.expected, difference.got) == ("length", "2 steps", "1 steps")


def test_no_steps_on_either_side_are_equal():
    assert compare_steps("logits", [], [], silent) == Comparison()


def tokens_against(got, scores, gap, noise=0.0):
    return compare_tokens(got, [vector(*s) for s in scores], lambda *_: gap, lambda _: noise, "")


def test_the_arg_max_is_right():
    assert tokens_against([1, 0], [(0.0, 1.0), (2.0, 1.0)], gap=INF) == Comparison()


def test_equal_scores_leave_the_choice():
    assert tokens_against([1], [(1.0, 1.0)], gap=INF) == Comparison()


def test_another_token_with_a_wide_margin_is_a_difference():
    (difference,) = tokens_against([0], [(0.0, 1.0)], gap=1.0).differences
    assert (difference.kind, difference.field, difference.expected) == ("tokens", "sequences", "1")


def test_a_margin_below_the_bound_is_a_tie_with_its_margin():
    found = tokens_against([0], [(1.0, 1.0 + 1e-6)], gap=1.1e-6)
    assert not found.differences
    assert "1.1e-06" in found.ties[0]


def test_a_margin_within_the_models_response_is_a_tie():
    assert tokens_against([0], [(0.0, 1.0)], gap=0.5, noise=0.5 / ROUNDING_FACTOR).ties


def test_comparing_goes_on_after_a_tied_token_and_stops_at_a_wrong_one():
    margins = {0: 1e-6, 1: 1.0, 2: 1.0}
    scores = [vector(0.0, 1.0)] * 3
    found = compare_tokens([0, 0, 0], scores, lambda step, *_: margins[step], silent, "")
    assert len(found.ties) == 1
    assert [d.where for d in found.differences] == ["step 1"]
