"""Our reference decoding loops on the installed models, inside the real `generate`."""

from __future__ import annotations

import importlib
from typing import Any

from conformance.call import Call
from conformance.reference import rollback


class Reference:
    """Runs the loop of the call's mechanism: `generate` of the module of that name in `conformance.reference`."""

    name = "reference"

    def generate(self, model: Any, call: Call) -> Any:
        """The same call as the installed subject's, with our loop in place of the installed one."""
        return importlib.import_module(f"conformance.reference.{call.mechanism}").generate(model, call)

    def new_cache(self, model: Any, call: Call) -> Any:
        """An empty cache for this call, as one that remembers what it is fed; None where there is none."""
        return rollback.cache_for(model, call.arguments())
