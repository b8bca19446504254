"""Exact ties in what a model selects: the k-th and the next value of a top-k are equal.

Scores of a selector pass through a ReLU, so several are exactly zero and perturbing the weights leaves them
so; which of them is taken depends on shapes. Where that happened, two right computations may differ widely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

MASKED = -1e30  # scores at or below are masked out: a tie among them selects nothing that counts
ROUNDING = 2e-6  # relative gap that rounding can turn around


class SelectionTies(TorchFunctionMode):
    """Counts the rows of `topk` calls whose selection is ambiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in (torch.topk, torch.Tensor.topk):
            self.count += ambiguous_rows(args[0], int(kwargs.get("k", args[1] if len(args) > 1 else 1)))
        return function(*args, **kwargs)


def ambiguous_rows(scores: torch.Tensor, k: int) -> int:
    """How many rows of `scores`, shape (..., n), have a k-th value that rounding cannot tell from the next."""
    if not scores.is_floating_point() or k >= scores.shape[-1] or k < 1:
        return 0
    ordered = scores.detach().double().sort(dim=-1, descending=True).values
    last, following = ordered[..., k - 1], ordered[..., k]
    close = (last - following) <= ROUNDING * last.abs().clamp(min=1e-3)
    return int((close & (following > MASKED)).sum())
