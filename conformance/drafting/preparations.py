"""Seeing inside without changing it: the calls of `prepare_inputs_for_generation`, of the model and its assistant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from conformance import upstream
from conformance.snapshots import changes, snapshot


@dataclass(frozen=True)
class Preparation:
    """One call. ids: all that it was given of the first row; fed: how many positions the forward gets of each row.

    who: `main`, `assistant`, or `first layers`, which is the main model where it drafts for itself.
    """

    who: str
    first: bool
    ids: tuple[int, ...]
    fed: int


class Preparations:
    """A probe: every preparation in order, in `outcome.extra["preparations"]`."""

    name = "preparations"

    @contextmanager
    def around(self, model: Any, call: Any) -> Iterator[Callable[[], list[Preparation]]]:
        """Wrap the method of both instances for the length of a block."""
        seen: list[Preparation] = []
        assistant = call.extras.get("assistant_model")
        with ExitStack() as stack:
            stack.enter_context(watched(model, "main", seen))
            if assistant is not None and assistant is not model and hasattr(assistant, "generate"):
                stack.enter_context(watched(assistant, "assistant", seen))
            yield lambda: seen


@contextmanager
def watched(model: Any, who: str, seen: list[Preparation]) -> Iterator[None]:
    """Write the instance's preparations down while the block runs; signatures stay, since they are looked at.

    A model that drafts with its own first layers calls its own `generate` from within.
    """
    right, generate, depth = model.prepare_inputs_for_generation, model.generate, 0

    @functools.wraps(right)
    def prepare(input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        inputs = right(input_ids, *args, **kwargs)
        ids = tuple(input_ids[0].flatten().tolist()) if len(input_ids) else ()
        seen.append(Preparation("first layers" if depth > 1 else who, upstream.told_first(kwargs), ids, _fed(inputs)))
        return inputs

    @functools.wraps(generate)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            return generate(*args, **kwargs)
        finally:
            depth -= 1

    model.prepare_inputs_for_generation, model.generate = prepare, counted
    try:
        yield
    finally:
        del model.prepare_inputs_for_generation, model.generate


def _fed(inputs: Mapping[str, Any]) -> int:
    for name in ("decoder_input_ids", "inputs_embeds", "input_ids"):
        if inputs.get(name) is not None:
            return int(inputs[name].shape[1])
    return 0


class Belongings:
    """A probe: what of the assistant a call changed, its configs and which modules it is made of: path → how, in
    `outcome.extra["assistant"]`.
    """

    name = "assistant"

    @contextmanager
    def around(self, model: Any, call: Any) -> Iterator[Callable[[], dict[str, str]]]:
        """Compare both configs before and after, also after an error."""
        assistant = call.extras.get("assistant_model") or model
        before = _belongings(assistant)
        yield lambda: changes(before, _belongings(assistant))


def _belongings(model: Any) -> dict[str, Any]:
    found = snapshot(vars(model.config), "assistant.config")
    found |= snapshot(vars(model.generation_config), "assistant.generation_config")
    return found | {f"assistant.modules.{name}": type(module).__name__ for name, module in model.named_modules()}
