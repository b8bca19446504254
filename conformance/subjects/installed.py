"""The installed `transformers`, as it is."""

from __future__ import annotations

from typing import Any

from conformance import upstream
from conformance.call import Call


class Installed:
    """Calls the model's own `generate`, with the call's mechanism switched on where it is not by itself."""

    name = "installed"

    def generate(self, model: Any, call: Call) -> Any:
        """The call that a user would make."""
        with upstream.mechanism(call.mechanism):
            return model.generate(**call.arguments())

    def place(self, recipe: Any) -> Any:
        """The model of a `placing.recipe.Recipe`, placed by the installed loader and dispatcher."""
        from conformance.placing.loaders import place_installed

        return place_installed(recipe)
