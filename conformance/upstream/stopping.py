"""The deferred stop check of the installed release."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def deferral() -> AbstractContextManager[Any]:
    """The installed release defers stopping on this device too: only its device condition is replaced."""
    from unittest.mock import patch

    import torch
    from transformers.generation import utils

    rule = utils.DeferredStopCheck.is_supported

    def is_supported(_: Any, *args: Any, **kwargs: Any) -> bool:
        return bool(rule(torch.device("mps"), *args, **kwargs))

    return patch.object(utils.DeferredStopCheck, "is_supported", staticmethod(is_supported))


def lacks_deferral() -> str | None:
    """Why the installed release cannot defer stopping, or None."""
    from transformers.generation import utils

    return None if hasattr(utils, "DeferredStopCheck") else "the release has no deferred stop check (5.17.0 has)"
