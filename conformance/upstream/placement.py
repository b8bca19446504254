"""Devices written in Python, and the reading of offloaded weights to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.upstream.releases import release


def lacks_python_backend() -> str | None:
    """Why this torch cannot have a device written in Python, or None."""
    if release("torch") < (2, 10):
        return "torch before 2.10 has no Python backend for devices of others"
    return None


def register_python_backend(name: str, module: Any, hooks: Any, guard: Any) -> None:
    """Register a device written in Python; torch calls the way to do it experimental."""
    from torch.utils import backend_registration

    backend_registration._setup_privateuseone_for_python_backend(
        rename=name, backend_module=module, hook=hooks, device_guard=guard
    )


@contextmanager
def file_reader_knows(name: str) -> Iterator[None]:
    """Inside, accelerate reads offloaded weights to devices called `name`: its reader has a list of those it knows."""
    from accelerate.utils import offload

    plain = offload.safe_open

    def safe_open(path: Any, framework: str, device: Any = "cpu") -> Any:
        return plain(path, framework=framework, device="cpu" if str(device).startswith(name) else device)

    offload.safe_open = safe_open
    try:
        yield
    finally:
        offload.safe_open = plain


def rests_on_the_cpu(model: Any) -> bool:
    """Whether a model was given to `cpu_offload_with_hook`: the whole of it is brought to its device when it runs."""
    from accelerate.hooks import CpuOffload

    hook = getattr(model, "_hf_hook", None)
    return any(isinstance(one, CpuOffload) for one in getattr(hook, "hooks", (hook,)))
