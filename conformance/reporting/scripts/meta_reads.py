# ruff: noqa: INP001
"""Ops that are given a tensor on `meta`, which holds no values, and give values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conformance.reporting.scripts.placing import answer, base_model, placed

ROWS = "all"


class Watch(TorchDispatchMode):
    """Sees every op."""

    reads: dict[str, str] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = [x for a in args for x in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(x, torch.Tensor)]
        if isinstance(out, torch.Tensor) and not out.is_meta and any(x.is_meta for x in given) and len(given) > 1:
            self.reads[f"{func} of {', '.join(str(x.device) for x in given)}"] = f"gave values on {out.device}"
        return out


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """None is expected."""
    base, watch = base_model(), Watch()
    model = placed(base)
    with suppress(RuntimeError), watch:  # what was read decides, not what comes of it
        answer(model, base)
    return dict.fromkeys(watch.reads or ["ops"], "not"), watch.reads or {"ops": "not"}
