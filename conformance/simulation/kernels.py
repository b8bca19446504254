"""What an accelerator has a kernel for and the CPU has none, written with ops that the CPU has.

Every function takes and gives tensors on the CPU. Recurrent cells are one op there, and several on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch


def histc(values: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """An accelerator counts integers, the CPU only floats."""
    counts = torch.ops.aten.histc.default(_counted(values), *args, **kwargs)
    return counts.to(values.dtype)


def _counted(values: torch.Tensor) -> torch.Tensor:
    return values if values.is_floating_point() else values.double()


def lstm_cell(
    of_input: torch.Tensor,
    of_hidden: torch.Tensor,
    state: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One step: hidden state and cell state, of shape (batch, size), and the gates, which a backward would need."""
    gates = _biased(of_input, input_bias) + _biased(of_hidden, hidden_bias)
    into, forget, new, out = gates.chunk(4, -1)
    cell = forget.sigmoid() * state + into.sigmoid() * new.tanh()
    return out.sigmoid() * cell.tanh(), cell, gates


def gru_cell(
    of_input: torch.Tensor,
    of_hidden: torch.Tensor,
    state: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step: the hidden state, of shape (batch, size), and what a backward would need."""
    input_gates = _biased(of_input, input_bias).chunk(3, -1)
    hidden_gates = _biased(of_hidden, hidden_bias).chunk(3, -1)
    reset, update = ((one + other).sigmoid() for one, other in zip(input_gates[:2], hidden_gates[:2], strict=True))
    new = (input_gates[2] + hidden_gates[2] * reset).tanh()
    return (state - new) * update + new, torch.cat([*input_gates, *hidden_gates, state], -1)


def lstm_cell_backward(
    of_hidden: torch.Tensor | None,
    of_cell: torch.Tensor | None,
    state: torch.Tensor,
    cell: torch.Tensor,
    gates: torch.Tensor,
    has_bias: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The gradients of gates, earlier state and biases."""
    nothing = torch.zeros_like(gates)
    back = torch.ops.aten._thnn_differentiable_lstm_cell_backward.default
    found = back(of_hidden, of_cell, gates, nothing, None, None, state, cell)
    return found[0], found[2], found[0].sum(0) if has_bias else None


def gru_cell_backward(grad: torch.Tensor, kept: torch.Tensor, has_bias: bool) -> tuple[torch.Tensor | None, ...]:
    """The gradients of both kinds of gates, of the earlier state, and of both biases."""
    size = grad.shape[-1]
    input_gates, hidden_gates, state = kept.split([3 * size, 3 * size, size], -1)
    back = torch.ops.aten._thnn_differentiable_gru_cell_backward.default
    found = back(grad, input_gates, hidden_gates, state, None, None)[:3]
    return (*found, *(gates.sum(0) if has_bias else None for gates in found[:2]))


def _biased(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


KERNELS: Mapping[str, Callable[..., Any]] = {
    "aten::histc": histc,
    "aten::_thnn_fused_lstm_cell": lstm_cell,
    "aten::_thnn_fused_gru_cell": gru_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "aten::_thnn_fused_gru_cell_backward": gru_cell_backward,
}
