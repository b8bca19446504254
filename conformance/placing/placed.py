"""What a placement case leaves to look at: a placed model, a planned recipe, a model saved over its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conformance.outcome import Crash, Outcome
from conformance.placing.loaded import Weights
from conformance.placing.recipe import Recipe
from conformance.placing.whereabouts import Where
from conformance.reference.placement import PlacementReport, audit_placement


@dataclass
class Placed:
    """A placed model, or the crash of placing it, with the places that hold weights and its configs as loaded.

    where, buffers: where its tensors were, and what its unsaved buffers held, when it was placed; peaks: the most that
    each simulated device held until then; refused: the crash is a clear refusal.
    """

    model: Any = None
    crash: Crash | None = None
    refused: bool = False
    holding: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Where] = field(default_factory=dict)
    buffers: Weights = field(default_factory=dict)
    peaks: dict[int, int] = field(default_factory=dict)

    @cached_property
    def report(self) -> PlacementReport:
        """The audit of the model."""
        return PlacementReport() if self.model is None else audit_placement(self.model)


@dataclass
class Planned:
    """The recipe with the map that a subject plans by itself, or how that went wrong; neither where it plans none.

    refused: the crash is a clear refusal.
    """

    recipe: Recipe | None = None
    crash: Crash | None = None
    refused: bool = False


@dataclass
class SavedOver:
    """A placed model saved where it was loaded from: its weights, what loads then, and its calls before and after."""

    weights: Weights
    again: Placed
    before: Outcome
    after: Outcome
