"""When two leaves of a snapshot are the same."""

import pytest
import torch

from conformance.snapshots import same

NAN, INF = float("nan"), float("inf")
LEAST = torch.finfo(torch.float32).min


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (1.0, 1.0, True),
        (1, 1.0, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (torch.tensor([NAN, 1.0]), torch.tensor([NAN, 1.0]), True),
        (torch.tensor([NAN, 1.0]), torch.tensor([1.0, NAN]), False),
        (torch.tensor([NAN, -INF]), torch.tensor([NAN, -INF]), True),
        (torch.tensor([NAN, -INF]), torch.tensor([NAN, LEAST]), False),
        (torch.tensor([NAN, 0.0]), torch.tensor([0.0, 0.0]), False),
        (torch.tensor([1]), torch.tensor([1.0]), False),
        (torch.ones(2), torch.ones(1, 2), False),
    ],
    ids=str,
)
def test_two_leaves_are_the_same(one, other, alike):
    assert same(one, other) is alike
