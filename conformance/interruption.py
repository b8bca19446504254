"""Ctrl-C, also where somebody's `except` swallows the KeyboardInterrupt that it raises."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_asked = threading.Event()


def watch() -> None:
    """Remember an interrupt besides raising it; only the main thread can."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != _interrupt:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_: int, __: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt


def check() -> None:
    """Raise KeyboardInterrupt when one was asked for and did not get through."""
    if _asked.is_set():
        raise KeyboardInterrupt
