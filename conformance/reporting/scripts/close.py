# ruff: noqa: INP001
"""Logits against logits, as `conformance.compare.compare_steps` does."""

from __future__ import annotations

import torch

from conformance.reporting.scripts.frame import BOUND, fault


def close(what: str, expected: list[torch.Tensor], got: list[torch.Tensor]) -> None:
    """Report the first step that differs by more than rounding does; a NaN is like nothing but a NaN."""
    if len(expected) != len(got):
        fault(f"{what} of {len(expected)} steps", f"{len(got)} steps")
    bound = BOUND * max((float(e[e.isfinite()].abs().max()) for e in expected if e.isfinite().any()), default=1.0)
    for step, (e, g) in enumerate(zip(expected, got)):
        wrong = ~torch.isclose(g.double(), e.double(), rtol=0, atol=bound, equal_nan=True)
        if wrong.any():
            at = int((g.double() - e.double()).abs().where(wrong, -1).nan_to_num(torch.inf).argmax())
            fault(f"{what}, step {step}, index {at}: {e.flatten()[at]:.6g} within {bound:.1e}", f"{g.flatten()[at]:.6g}")
