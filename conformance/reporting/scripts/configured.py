# ruff: noqa: INP001
"""The config of a placed model, its mode and how it attends, beside the same model's without a placement."""

from __future__ import annotations

import tempfile
from typing import Any

from conformance.reporting.scripts.frame import LOAD
from conformance.reporting.scripts.placing import base_model, placed
from conformance.reporting.scripts.stored import store

ROWS = "all"
UNSEEN = ("generation_config",)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Its fields, but for where it was loaded from."""
    base, folder = base_model(), tempfile.mkdtemp()
    store(base, folder)
    plain, given = (described(model) for model in (LOAD(base, folder), placed(base)))
    return plain, given


def described(model: Any) -> dict[str, str]:
    """In text: each field, the modules that train, and how it attends."""
    fields = model.config.to_dict()
    found = {name: repr(fields[name]) for name in fields if name not in ("_name_or_path", "transformers_version")}
    found["training"] = repr([name for name, module in model.named_modules() if module.training])
    return {**found, "attention": repr(getattr(model.config, "_attn_implementation", None))}
