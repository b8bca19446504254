# ruff: noqa: INP001
"""Deferred stopping on any device, as the release has it on some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from transformers.generation import utils

UNCOUNTED = True


class Event:
    """An event of a device whose copies have landed when they are waited for."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """As `torch.Event`."""
        self.record = self.synchronize = lambda: None


@contextmanager
def deferred() -> Iterator[None]:
    """`generate` stops one step late in this block, on any device: only the device condition is replaced."""
    check, rule = utils.DeferredStopCheck, utils.DeferredStopCheck.is_supported
    anywhere = staticmethod(lambda _, *rest, **named: rule(torch.device("mps"), *rest, **named))
    with patch.object(check, "is_supported", anywhere), patch.object(torch, "Event", Event):
        yield
