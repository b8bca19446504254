"""Broken copies of the reference's deferred stopping that show only where more is asked for than tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from conformance.reference.decode import Recorder


@contextmanager
def attentions_are_not_undone() -> Iterator[None]:
    """A tuple of attentions more than there are steps is returned."""
    right = Recorder.undo

    def undo(self, steps):
        kept = {name: states for name, states in self.states.items() if name.endswith("attentions")}
        right(self, steps)
        self.states |= kept

    with patch.object(Recorder, "undo", undo):
        yield


@contextmanager
def several_sequences_are_not_undone() -> Iterator[None]:
    """Where a row is returned several times, the scores of the undone step are, too."""
    right = Recorder.undo

    def undo(self, steps):
        scores = self.scores
        right(self, steps)
        if (self.config.num_return_sequences or 1) > 1:
            self.scores = scores

    with patch.object(Recorder, "undo", undo):
        yield
