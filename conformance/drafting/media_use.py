"""Seeing inside without changing it: how often each model of a call gets its images or sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import torch

from conformance import upstream


@dataclass
class Seen:
    """What one model got.

    raw: module → how often it got the tensors of the call; encoded: how many positions' worth of what `generate` made
    of them its forwards got, in the releases that encode ahead and then hand each chunk its part.
    """

    raw: Counter[str] = field(default_factory=Counter)
    encoded: int = 0

    def times(self, placeholders: int) -> tuple[str, Fraction]:
        """The module that got all images most often, and how often: parts of them add up to once for all."""
        whole = self.raw["itself"] + Fraction(self.encoded, placeholders)
        name, most = max(self.raw.items(), key=lambda item: item[1], default=("itself", 0))
        return (name, Fraction(most)) if most > 1 and most > whole else ("itself", whole)


class MediaUse:
    """A probe: which modules of both models got the call's images or sound, in `outcome.extra["media"]`, by model."""

    name = "media"

    @contextmanager
    def around(self, model: Any, call: Any) -> Iterator[Callable[[], dict[str, Seen]]]:
        """Look at what reaches every module while the block runs."""
        given = {t.data_ptr() for name, t in call.inputs.items() if t.is_floating_point() and name != "inputs_embeds"}
        models = {"main": model, "assistant": call.extras.get("assistant_model")}
        seen = {who: Seen() for who, one in models.items() if one is not None}
        with ExitStack() as stack:
            for who in seen if given else ():
                for name, module in models[who].named_modules():
                    hook = _counting(seen[who], name or "itself", given)
                    stack.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
            yield lambda: seen


def _counting(seen: Seen, name: str, given: set[int]) -> Callable[..., None]:
    def count(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor))
        seen.raw[name] += any(tensor.data_ptr() in given for tensor in tensors)
        seen.encoded += upstream.encoded_positions(kwargs) if name == "itself" else 0

    return count
