# ruff: noqa: INP001
"""The config of a placed model, beside that of the same model without a placement."""

from __future__ import annotations

import tempfile

from conformance.reporting.scripts.frame import LOAD
from conformance.reporting.scripts.placing import base_model, placed
from conformance.reporting.scripts.stored import store

ROWS = "all"
UNSEEN = ("generation_config",)


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Its fields, but for where it was loaded from."""
    base, folder = base_model(), tempfile.mkdtemp()
    store(base, folder)
    configs = [model.config.to_dict() for model in (LOAD(base, folder), placed(base))]
    plain, given = ({k: repr(c[k]) for k in c if k not in ("_name_or_path", "transformers_version")} for c in configs)
    return plain, given
