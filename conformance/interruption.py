"""Ctrl-C, and a request to end, also where somebody's `except` swallows the KeyboardInterrupt that they raise."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_asked = threading.Event()


def watch() -> None:
    """Remember an interrupt besides raising it; only the main thread can. SIGTERM is one: what was found is kept."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != _interrupt:
            signal.signal(number, _interrupt)


def _interrupt(_: int, __: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt


def check() -> None:
    """Raise KeyboardInterrupt when one was asked for and did not get through."""
    if _asked.is_set():
        raise KeyboardInterrupt


def let_through(error: BaseException) -> None:
    """Raise what asks for the end of the run. Whatever else a stranger raises, SystemExit included, is an outcome."""
    if type(error) is KeyboardInterrupt:
        raise error
