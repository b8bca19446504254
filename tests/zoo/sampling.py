"""Faults planted in how the reference's assisted decoding samples, for the length of a block.

All of them leave logits and scores as they are, and every token that comes of them is a possible one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch

from conformance.reference import assisted, drafters


@contextmanager
def every_draft_accepted() -> Iterator[None]:
    """A drafted token that is possible at all is taken."""
    with patch.object(assisted, "accepts", lambda own, _, draft: float(own[draft]) > 0):
        yield


@contextmanager
def ratio_turned_round() -> Iterator[None]:
    """A draft is accepted with the ratio of the assistant's chance to the model's."""
    right = assisted.accepts
    with patch.object(assisted, "accepts", lambda own, chances, draft: right(chances, own, draft)):
        yield


@contextmanager
def rejected_drawn_from_all() -> Iterator[None]:
    """In the place of a rejected token one is drawn from all of the model's own distribution."""
    with patch.object(assisted, "left_over", lambda own, _: own):
        yield


@contextmanager
def drafts_are_the_likeliest() -> Iterator[None]:
    """The assistant drafts its likeliest token and says that it drew it."""
    with patch.object(drafters, "choose", lambda scores, _: torch.argmax(scores, dim=-1)):
        yield
