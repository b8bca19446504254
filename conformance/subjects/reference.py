"""Our reference decoding loops on the installed models, inside the real `generate`."""

from __future__ import annotations

import importlib
from typing import Any

from conformance.call import Call
from conformance.reference import rollback, special_tokens
from conformance.subjects.installed import Installed

WORKS_ON_A_MAP = ("no-op-reads-meta", "placed-matches-unplaced", "save-and-reload-keeps-ties")


class InstalledOnPlannedMap(Installed):
    """The installed loader, given the reference planner's map where it would plan one, and no address used twice."""

    def place(self, recipe: Any) -> Any:
        """The placed model. Raises whatever the loader raises."""
        from conformance.placing.loaders import place_with_originals, planned_by_reference

        return place_with_originals(planned_by_reference(recipe))


class Reference:
    """Runs the loop of the call's mechanism: `generate` of the module of that name in `conformance.reference`."""

    name = "reference"

    def generate(self, model: Any, call: Call) -> Any:
        """The same call as the installed subject's, with our loop in place of the installed one."""
        return importlib.import_module(f"conformance.reference.{call.mechanism}").generate(model, call)

    def special_tokens(self, model: Any, generation_config: Any, **asked: Any) -> dict[str, Any]:
        """Prepared tokens by name (bos, eos, pad, decoder_start): plain ints first, tensors last."""
        return special_tokens.prepared_for(model, generation_config, **asked)

    def place(self, recipe: Any) -> Any:
        """The same, but a map that the loader would plan is the reference planner's, and no address is used twice."""
        return InstalledOnPlannedMap().place(recipe)

    def also_installed(self, check: str) -> tuple[Installed, ...]:
        """Models and hooks are the release's: what they cannot do on our map is its fault, the map itself is ours."""
        return (InstalledOnPlannedMap(),) if check in WORKS_ON_A_MAP else ()

    def audit(self, model: Any) -> None:
        """Raise PlacementError where the model cannot run as it is placed."""
        from conformance.reference.placement import audit_placement

        audit_placement(model).raise_if_wrong()

    def new_cache(self, model: Any, call: Call) -> Any:
        """An empty cache for this call, as one that remembers what it is fed; None where there is none."""
        return rollback.cache_for(model, call.arguments())
