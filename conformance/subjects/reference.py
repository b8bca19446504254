"""Our reference decoding loops on the installed models, inside the real `generate`."""

from __future__ import annotations

import importlib
from typing import Any

from conformance.call import Call
from conformance.reference import rollback, special_tokens


class Reference:
    """Runs the loop of the call's mechanism: `generate` of the module of that name in `conformance.reference`."""

    name = "reference"

    def generate(self, model: Any, call: Call) -> Any:
        """The same call as the installed subject's, with our loop in place of the installed one."""
        return importlib.import_module(f"conformance.reference.{call.mechanism}").generate(model, call)

    def special_tokens(self, model: Any, generation_config: Any, **asked: Any) -> dict[str, Any]:
        """Prepared tokens by name (bos, eos, pad, decoder_start): plain ints first, tensors last."""
        return special_tokens.prepared_for(model, generation_config, **asked)

    def planned(self, recipe: Any) -> Any:
        """The recipe with a map of our planner's, where it asks for one to be planned. Raises DoesNotFit."""
        from conformance.placing.loaders import planned_by_reference

        return planned_by_reference(recipe)

    def place(self, recipe: Any) -> Any:
        """The model placed by the installed loader as it is planned here, so that no address is used twice."""
        from conformance.placing.loaders import place_with_originals

        return place_with_originals(self.planned(recipe))

    def audit(self, model: Any) -> None:
        """Raise PlacementError where the model cannot run as it is placed."""
        from conformance.reference.placement import audit_placement

        audit_placement(model).raise_if_wrong()

    def new_cache(self, model: Any, call: Call) -> Any:
        """An empty cache for this call, as one that remembers what it is fed; None where there is none."""
        return rollback.cache_for(model, call.arguments())
