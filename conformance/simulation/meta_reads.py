"""Notice every operation that would need the value of a tensor on `meta`, whether or not it raises."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Operations whose result depends on values even where it is no tensor, or whose shape does.
READS = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "unique", "_unique2")


class MetaReads(TorchDispatchMode):
    """`seen` names the operations that read a `meta` tensor's value or copy it to a device that has values.

    An operation between `meta` and a real device counts too: what it gives on the real device is garbage.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation; note it when it reads."""
        kwargs = kwargs or {}
        if not any(tensor.is_meta for tensor in _tensors((args, kwargs))):
            return func(*args, **kwargs)
        try:
            result = func(*args, **kwargs)
        except (RuntimeError, NotImplementedError):  # what a read on `meta` raises, where it is noticed at all
            self.seen.append(str(func))
            raise
        if func.overloadpacket.__name__ in READS or any(not tensor.is_meta for tensor in _tensors(result)):
            self.seen.append(str(func))
        return result


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
