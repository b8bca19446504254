"""A limit on the time of one call, so that a hang is a finding and not the end of a run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CALL_SECONDS = 60.0
RINGS_AGAIN = 5.0  # seconds, where the block goes on all the same: the first ring may have met a bare `except`
SOON = 1e-6  # a timer set to nothing would never ring


class TookTooLong(Exception):
    """A call did not come back within its limit."""


class _Stop(BaseException):
    """Raised inside the block: no `except Exception` of a stranger's in an endless loop swallows it."""


@contextmanager
def time_limit(seconds: float = CALL_SECONDS) -> Iterator[None]:
    """End the block after `seconds` and raise TookTooLong; no limit outside the main thread or on Windows.

    A limit around this one goes on afterwards with what is left of it.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    its = _Stop()

    def stop(_: int, __: FrameType | None) -> None:
        raise its

    previous, start = signal.signal(signal.SIGALRM, stop), time.monotonic()
    around, _ = signal.setitimer(signal.ITIMER_REAL, seconds, RINGS_AGAIN)
    try:
        yield
    except _Stop as stopped:
        if stopped is not its:
            raise  # that of a limit around this one
        raise TookTooLong(f"no result within {seconds:g} s").with_traceback(stopped.__traceback__) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if around:
            signal.setitimer(signal.ITIMER_REAL, max(around - (time.monotonic() - start), SOON), RINGS_AGAIN)
