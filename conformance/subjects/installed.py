"""The installed `transformers`, as it is."""

from __future__ import annotations

import copy
from typing import Any

from conformance import upstream
from conformance.call import Call


class Installed:
    """Calls the model's own `generate`, with the call's mechanism switched on where it is not by itself."""

    name = "installed"

    def generate(self, model: Any, call: Call) -> Any:
        """The call that a user would make."""
        with upstream.mechanism(call.mechanism):
            return model.generate(**call.arguments(own_loop=True))

    def special_tokens(self, model: Any, generation_config: Any, **asked: Any) -> dict[str, Any]:
        """Prepared tokens by name (bos, eos, pad, decoder_start), as `generate` has them: in its copy of the config."""
        own = copy.deepcopy(generation_config)
        upstream.prepare_special_tokens(model, own, **asked)
        return {name: getattr(own, f"_{name}_token_tensor") for name in ("bos", "eos", "pad", "decoder_start")}

    def place(self, recipe: Any) -> Any:
        """The model of a `placing.recipe.Recipe`, placed by the installed loader and dispatcher."""
        from conformance.placing.loaders import place_installed

        return place_installed(recipe)
