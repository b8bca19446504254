"""Reports beside `summary.json`: a module with `write(folder, summary, records)` is found and called after a run."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any


def write_all(folder: Path, summary: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """Write every report of a run into its folder, in the order of their names."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}").write(folder, summary, records)
