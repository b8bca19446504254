"""Hypothesis strategies, and nothing else: a strategy is a recipe plus a range.

The public ones are the names below. Options are keyword-only; an argument is a value or a strategy, never both; ranges
that hold nothing, and combinations that cannot be, are refused when the strategy is made.
"""

from __future__ import annotations

from conformance.strategies.architectures import architectures, cells, configs
from conformance.strategies.cases import cases, models
from conformance.strategies.placements import placements
from conformance.strategies.prompts import prompts
from conformance.strategies.settings import settings
from conformance.strategies.tying import tied_weights

__all__ = ["architectures", "cases", "cells", "configs", "models", "placements", "prompts", "settings", "tied_weights"]
