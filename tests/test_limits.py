"""Limits on the time of one call, one inside the other."""

import time

import pytest

from conformance import limits
from conformance.limits import TookTooLong, time_limit


def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_what_takes_too_long_is_ended():
    with pytest.raises(TookTooLong, match=r"within 0\.05 s"), time_limit(0.05):
        busy(5)


def one_inside_the_other(seconds_inside, reached):
    with time_limit(5):
        busy(seconds_inside)
        reached.append(True)
    busy(5)


@pytest.mark.parametrize("inside", [0.01, 0.2], ids=["ends before", "ends after"])
def test_a_limit_around_another_goes_on_after_it(inside):
    reached = []
    with pytest.raises(TookTooLong, match=r"within 0\.1 s"), time_limit(0.1):
        one_inside_the_other(inside, reached)
    assert reached


def test_after_a_limit_there_is_none():
    with time_limit(0.05):
        pass
    busy(0.1)


def swallows(error):
    while True:
        try:
            busy(0.02)
            raise ValueError
        except error:
            pass


def test_a_loop_that_swallows_every_exception_is_ended():
    with pytest.raises(TookTooLong), time_limit(0.05):
        swallows(Exception)


def test_one_that_swallows_the_first_ring_meets_the_next(monkeypatch):
    monkeypatch.setattr(limits, "RINGS_AGAIN", 0.05)

    def once():
        try:
            busy(5)
        except BaseException:  # noqa: BLE001 - as a stranger writes it
            busy(5)

    with pytest.raises(TookTooLong), time_limit(0.05):
        once()


def test_it_tells_where_the_block_was():
    with pytest.raises(TookTooLong) as raised, time_limit(0.05):
        busy(5)
    assert "busy" in [entry.name for entry in raised.traceback]
