"""Seeding is `torch.manual_seed`, without what that keeps for devices that are not there."""

import pytest
import torch

from conformance.seeding import seed_everything


def test_the_same_numbers_as_by_torch():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        expected = torch.rand(5)
        seed_everything(11)
        assert torch.equal(torch.rand(5), expected)
        assert torch.initial_seed() == 11


@pytest.mark.skipif(torch.accelerator.is_available(), reason="an accelerator is seeded, too")
def test_nothing_is_kept_for_devices_that_are_not_there():
    with torch.random.fork_rng(devices=[]):
        before = len(torch.cuda._queued_calls)
        seed_everything(11)
        assert len(torch.cuda._queued_calls) == before
