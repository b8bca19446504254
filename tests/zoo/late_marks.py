"""Broken copies of the reference's deferred stopping: another cache, another process, and hidden waits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch

from conformance import upstream
from conformance.reference.stop_checks import Slot
from zoo.late_traces import _around_run, _nothing


def another_cache_is_returned():
    """One with the same contents as the caller's."""

    def replace(decoding, *_):
        name = upstream.cache_name(decoding.kwargs)
        decoding.kwargs[name] = copy.deepcopy(decoding.kwargs[name])

    return _around_run(replace, _nothing)


@contextmanager
def a_switch_of_torch_stays_on() -> Iterator[None]:
    """Steps are undone with deterministic algorithms, and whoever calls next has them as well."""
    before = torch.are_deterministic_algorithms_enabled()
    try:
        with _around_run(lambda *_: torch.use_deterministic_algorithms(not before), _nothing):
            yield
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def flag_is_assigned_to_the_hosts() -> Iterator[None]:
    """A copy that blocks, though it does not look like one."""
    right = Slot.fill

    def fill(self, finished, tokens):
        right(self, finished, tokens)
        torch.zeros(1, dtype=torch.bool, device="cpu")[0] = finished.all()

    with patch.object(Slot, "fill", fill):
        yield


@contextmanager
def finished_rows_are_looked_for() -> Iterator[None]:
    """How many there are is known when the device has computed them."""
    right = Slot.fill

    def fill(self, finished, tokens):
        right(self, finished, tokens)
        torch.where(finished)

    with patch.object(Slot, "fill", fill):
        yield
