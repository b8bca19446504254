"""A tensor that becomes another and keeps its identity, and so its ties, as where `Module.to` moves a parameter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch


def swap(one: torch.Tensor, other: torch.Tensor) -> None:
    """What `torch.utils.swap_tensors` does, also where a graph that was recorded before still holds a tensor.

    Moving to a real accelerator does not ask for that either. A backward through such a graph raises RuntimeError.
    """
    for tensor in (one, other):
        if tensor.is_leaf and tensor.requires_grad and not tensor.is_inference():
            with torch.inference_mode(False), torch.enable_grad():
                torch.autograd.graph.get_gradient_edge(tensor).node.register_prehook(_moved)
    one.__class__, other.__class__ = other.__class__, one.__class__
    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
    torch._C._swap_tensor_impl(one, other)


def _moved(_: Any) -> None:
    raise RuntimeError("backward through a graph that is older than a move of a parameter in it to another device")


@contextmanager
def keeps_identity() -> Iterator[None]:
    """Inside, `Module.to` and its like keep the identity of parameters."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with patch.object(torch.utils, "swap_tensors", swap):
            yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
