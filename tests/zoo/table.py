"""Every planted fault: the tables of all families, found by their names."""

from __future__ import annotations

import importlib
import pkgutil

import zoo
from zoo.fault import Fault

TABLES = sorted(m.name for m in pkgutil.iter_modules(zoo.__path__) if m.name.endswith("_table"))
FAULTS: tuple[Fault, ...] = tuple(fault for name in TABLES for fault in importlib.import_module(f"zoo.{name}").FAULTS)
