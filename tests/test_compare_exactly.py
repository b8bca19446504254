"""Comparing bitwise, and how a difference is named."""

import math

import pytest
import torch

from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.outcome import Crash

NAN = math.nan


def vector(*values):
    return torch.tensor(values)


@pytest.mark.parametrize(
    ("got", "differs"),
    [
        (vector(1.0), False),
        (vector(1.0).nextafter(vector(2.0)), True),
        (vector(1.0).double(), True),
        (torch.ones(1, 1), True),
    ],
)
def test_exactly_means_bitwise_with_shape_and_dtype(got, differs):
    assert bool(compare_exactly({"a": got}, {"a": vector(1.0)}).differences) == differs


def test_exactly_takes_a_nan_in_the_same_place_for_equal():
    assert not compare_exactly({"a": vector(NAN, 1.0)}, {"a": vector(NAN, 1.0)}).differences
    assert compare_exactly({"a": vector(NAN, 1.0)}, {"a": vector(1.0, NAN)}).differences
    assert compare_exactly({"a": vector(NAN, 1.0)}, {"a": vector(NAN, 2.0)}).differences


def test_exactly_tells_types_apart():
    assert compare_exactly({"a": 1}, {"a": True}).differences
    assert compare_exactly({"a": 1}, {"a": 1.0}).differences


@pytest.mark.parametrize(
    ("got", "expected", "kind"), [({}, {"a": 1}, "removed"), ({"a": 1}, {}, "added"), ({"a": 2}, {"a": 1}, "changed")]
)
def test_exactly_names_fields_that_one_side_lacks(got, expected, kind):
    assert compare_exactly(got, expected).differences[0].kind == kind


FIELDS = (
    "sequences",
    "streamed.0",
    "logits.0",
    "scores.0",
    "states.attentions.0.1",
    "cache_length",
    "cache.layers.0.keys",
    "rng",
)


@pytest.mark.parametrize("count", range(len(FIELDS), 0, -1))
def test_a_difference_is_named_after_the_field_that_a_user_sees_first(count):
    kept = FIELDS[len(FIELDS) - count :]
    found = compare_exactly(dict.fromkeys(kept, 1), dict.fromkeys(kept, 2))
    assert found.differences[0].field == unnumbered(kept[0])


def test_fields_are_named_without_numbers():
    assert unnumbered("cache.layers.12.keys") == "cache.layers.keys"
    assert unnumbered("logits.3") == "logits"


def test_a_crash_names_its_type_and_place():
    crash = Crash("ValueError", "no", "utils._sample")
    (difference,) = crash_difference(crash, "the row alone works").differences
    assert difference.raised_in == "ValueError in utils._sample"
    assert difference.expected == "no exception, as the row alone works"
