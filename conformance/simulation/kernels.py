"""What an accelerator has a kernel for and the CPU has none, written with ops that the CPU has.

Every function takes and gives tensors on the CPU. Recurrent cells are computed as the CPU computes them op by op; they
have no backward, which raises NotImplementedError.
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
    return (state - new) * update + new, torch.cat([reset, update, new], -1)


def _biased(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


KERNELS: Mapping[str, Callable[..., Any]] = {
    "aten::histc": histc,
    "aten::_thnn_fused_lstm_cell": lstm_cell,
    "aten::_thnn_fused_gru_cell": gru_cell,
}
