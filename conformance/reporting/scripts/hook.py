# ruff: noqa: INP001
"""A processor, criterion or streamer of the caller's that raises in one call."""

from __future__ import annotations

from typing import Any

import torch

from conformance.reporting.scripts.frame import HOOK, RAISES_AT


class Hook:
    """Raises in one call; else the scores are left as they are, and no row is stopped."""

    left = RAISES_AT

    def __call__(self, ids: Any, scores: Any) -> Any:
        """As a processor or a criterion."""
        self.left -= 1
        if self.left == 0:
            raise ValueError("told to raise")
        return torch.zeros(len(ids), dtype=torch.bool) if HOOK == "stopping_criteria" else scores

    def put(self, value: Any) -> None:
        """As a streamer."""
        self(value, value)

    def end(self) -> None:
        """As a streamer."""
        self.left = 0


def hooked() -> dict[str, Any]:
    """The keyword of `generate` for a new one."""
    return {HOOK: Hook() if HOOK == "streamer" else [Hook()]}
