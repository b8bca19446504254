"""How much of a run's time is spent inside model code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds spent inside `running()` blocks; nested blocks count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the block's time."""
        self._depth += 1
        start = time.perf_counter()
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - start

    def add(self, seconds: float) -> None:
        """Count time that another process has spent, where no block is open that would count the wait for it too."""
        if not self._depth:
            self.seconds += seconds


MODEL_CODE = Clock()
