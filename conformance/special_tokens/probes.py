"""What is watched, or changed, while a call runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from conformance.call import Call


class MetaDefaults:
    """A probe that changes what it watches: tensors are made on `meta` unless their device is named."""

    name = "meta defaults"

    def around(self, model: Any, call: Call) -> AbstractContextManager[Callable[[], Any]]:  # noqa: ARG002
        """The default device for the length of the run."""
        return _on_meta()


@contextmanager
def _on_meta() -> Iterator[Callable[[], Any]]:
    with torch.device("meta"):
        yield lambda: None


class ModuleCalls:
    """A probe that counts the forwards of all modules."""

    name = "module calls"

    def around(self, model: Any, call: Call) -> AbstractContextManager[Callable[[], Any]]:  # noqa: ARG002
        """Hooks for the length of the run."""
        return _counted(model)


@contextmanager
def _counted(model: Any) -> Iterator[Callable[[], Any]]:
    count = [0]

    def hook(*_: Any) -> None:
        count[0] += 1

    handles = [module.register_forward_pre_hook(hook) for module in model.modules()]
    try:
        yield lambda: count[0]
    finally:
        for handle in handles:
            handle.remove()
