"""The installed `transformers`, as it is."""

from __future__ import annotations

from typing import Any


class Installed:
    """Calls the model's own `generate`."""

    name = "installed"

    def generate(self, model: Any, inputs: dict[str, Any], generation_config: Any, streamer: Any = None) -> Any:
        """The call that a user would make."""
        return model.generate(**inputs, generation_config=generation_config, streamer=streamer)
