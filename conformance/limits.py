"""A limit on the time of one call, so that a hang is a finding and not the end of a run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CALL_SECONDS = 60.0
SOON = 1e-6  # a timer set to nothing would never ring


class TookTooLong(Exception):
    """A call did not come back within its limit."""


@contextmanager
def time_limit(seconds: float = CALL_SECONDS) -> Iterator[None]:
    """Raise TookTooLong inside the block after `seconds`; no limit outside the main thread or on Windows.

    A limit around this one goes on afterwards with what is left of it.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise TookTooLong(f"no result within {seconds:g} s")

    previous, start = signal.signal(signal.SIGALRM, stop), time.monotonic()
    around, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if around:
            signal.setitimer(signal.ITIMER_REAL, max(around - (time.monotonic() - start), SOON))
