"""Subjects that change something of the caller's, usable as `--subject zoo.editing:NAME`."""

from __future__ import annotations

from conformance import upstream
from conformance.subjects.installed import Installed


class EditsGenerationConfig(Installed):
    """Edits the generation config that the caller passed."""

    name = "edits-generation-config"

    def generate(self, model, call):
        output = super().generate(model, call)
        call.generation_config.low_memory = True
        return output


class EditsKeywords(Installed):
    """Consumes a dictionary that the caller passed as a keyword."""

    name = "edits-keywords"

    def generate(self, model, call):
        output = super().generate(model, call)
        call.extras.get("cache_config", {}).pop("backend", None)
        return output


class IgnoresTheModelsLimit(Installed):
    """Generates twenty tokens where only the model's own generation config says how many."""

    name = "ignores-the-models-limit"

    def generate(self, model, call):
        told = {} if call.generation_config is not None else {"max_new_tokens": 20}
        return super().generate(model, call.replace(extras={**call.extras, **told}))


class TakesBackTheCache(Installed):
    """Empties the cache that the call before returned."""

    name = "takes-back-the-cache"

    def __init__(self):
        self.last = None

    def generate(self, model, call):
        for layer in getattr(self.last, "layers", ()):
            layer.keys.zero_()
        output = super().generate(model, call)
        self.last = upstream.cache_of(output)
        return output


class AltersTheStart(Installed):
    """Changes the second token that a decoder is to start with."""

    name = "alters-the-start"

    def generate(self, model, call):
        ids = call.inputs.get("decoder_input_ids")
        if ids is not None and ids.shape[1] > 1:
            ids = ids.clone()
            ids[:, 1] = 1 + ids[:, 1] % 3
            call = call.replace(inputs={**call.inputs, "decoder_input_ids": ids})
        return super().generate(model, call)


class EditsAfterAnError(Installed):
    """Edits the generation config of the caller when the call raises."""

    name = "edits-after-an-error"

    def generate(self, model, call):
        try:
            return super().generate(model, call)
        except Exception:
            call.generation_config.low_memory = True
            raise


class EditsModelConfig(Installed):
    """Edits the model's config."""

    name = "edits-model-config"

    def generate(self, model, call):
        output = super().generate(model, call)
        model.config.bos_token_id = 7
        return output


class EditsModelsGenerationConfig(Installed):
    """Edits the generation config that the model carries."""

    name = "edits-models-generation-config"

    def generate(self, model, call):
        output = super().generate(model, call)
        model.generation_config.bos_token_id = 7
        return output


class EditsInputs(Installed):
    """Writes into the caller's prompt."""

    name = "edits-inputs"

    def generate(self, model, call):
        output = super().generate(model, call)
        call.inputs["input_ids"][:, -1] += 1
        return output
