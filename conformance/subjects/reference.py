"""Our reference decoding loop on the installed models, inside the real `generate`."""

from __future__ import annotations

from typing import Any

from conformance.reference.decode import plain_loop


class Reference:
    """Runs the reference loop as `custom_generate`; the streamer reaches it by closure."""

    name = "reference"

    def generate(self, model: Any, inputs: dict[str, Any], generation_config: Any, streamer: Any = None) -> Any:
        """The same call as the installed subject's, with our loop in place of `_sample`."""
        return model.generate(**inputs, generation_config=generation_config, custom_generate=plain_loop(streamer))
