"""What one token of a forward over several would have left behind, had it been fed alone."""

from __future__ import annotations

from typing import Any

from conformance.reference.decode import RECORDED

WEIGHTS_DIM = 4


def one_of(outputs: Any, step: int, steps: int, length: int, first: bool) -> dict[str, Any]:
    """The recorded states of token `step` of the last `steps`, layer by layer; all of a prompt's when `first`.

    `length`: positions fed so far, these included. A hidden state has shape (1, steps, ..., size), with several streams
    in DeepSeek V4, or (streams, 1, steps, size) in Gemma 3n: drafts are verified for one row. Attention weights have
    shape (batch, heads, steps, keys), of which the keys after the token's own are cut. What a model without keys
    records in place of weights has the shape of a hidden state.
    """
    names = [name for name in RECORDED if outputs.get(name) is not None]
    if first:
        return {name: outputs[name] for name in names}
    return {name: tuple(_layer(name, layer, step, steps, length) for layer in outputs[name]) for name in names}


def _layer(name: str, layer: Any, step: int, steps: int, length: int) -> Any:
    if layer is None:
        return None
    hidden = name.endswith("hidden_states")
    if hidden and layer.shape[0] == 1:
        return layer[:, step : step + 1]
    one = layer[..., step : step + 1, :]
    keys = one.shape[-1]
    no_keys = hidden or one.dim() < WEIGHTS_DIM
    if no_keys or name == "cross_attentions" or keys > length:  # a static cache has all its keys
        return one
    return one[..., : keys - (steps - 1 - step)]
