"""Subjects with one fault each, usable as `--subject zoo.subjects:NAME`."""

# ruff: noqa: ARG002 - a place for a fault is given all that some fault needs

from __future__ import annotations

import os
import weakref

import torch
from transformers.cache_utils import DynamicLayer

from conformance import upstream
from conformance.subjects.installed import Installed
from zoo.loop import Decoder


class DropsOldest(Decoder):
    """Loses the oldest cache entry of every growing layer before every decode step."""

    name = "drops-oldest"

    def cache(self, cache):
        for layer in cache.layers:
            if isinstance(layer, DynamicLayer) and layer.keys.shape[-2] > 1:
                layer.keys, layer.values = layer.keys[..., 1:, :], layer.values[..., 1:, :]


class RepeatsPosition(Decoder):
    """Does not advance the position of the second decode step."""

    name = "repeats-position"

    def inputs(self, inputs, step):
        return {**inputs, "position_ids": inputs["position_ids"] - 1} if step == 1 else inputs


class RoundsCache(Decoder):
    """Keeps the cache in half precision."""

    name = "rounds-cache"

    def cache(self, cache):
        for layer in cache.layers:
            layer.values = layer.values.half().to(layer.values.dtype)


class SwapsRows(Decoder):
    """Gives the rows of a batch each other's cache entries."""

    name = "swaps-rows"

    def cache(self, cache):
        for layer in cache.layers:
            layer.keys, layer.values = layer.keys.flip(0), layer.values.flip(0)


class CrashesOnBatches(Installed):
    """Takes one row only."""

    name = "crashes-on-batches"

    def generate(self, model, call):
        if call.inputs["input_ids"].shape[0] > 1:
            raise ValueError("one row at a time")
        return super().generate(model, call)


class KeepsEmitting(Decoder):
    """Goes on with the tokens of a finished row in place of padding."""

    name = "keeps-emitting"

    def filled(self, tokens, finished, pad):
        return tokens


class StopsEarly(Decoder):
    """Stops one token before the limit."""

    name = "stops-early"

    def stopped(self, stopped, input_ids, generation_config):
        return stopped | (input_ids.shape[1] >= generation_config.max_length - 1)


class IgnoresEnd(Decoder):
    """Never stops before the limit."""

    name = "ignores-end"

    def stopped(self, stopped, input_ids, generation_config):
        return torch.full_like(stopped, input_ids.shape[1] >= generation_config.max_length)


class AltersScore(Decoder):
    """Returns one score of the first step a little off."""

    name = "alters-score"

    def scores(self, scores, step):
        if step > 0:
            return scores
        altered = scores.clone()
        altered[:, 3] += 0.01 * scores.abs().max()
        return altered


class MasksScore(Decoder):
    """Returns minus infinity for a token that is allowed."""

    name = "masks-score"

    def scores(self, scores, step):
        return scores.index_fill(1, torch.tensor([int(scores[0].argmin())]), float("-inf"))


class LosesLogit(Decoder):
    """Returns a NaN in the logits of the last token of the vocabulary, which it never chooses for it."""

    name = "loses-logit"

    def scores(self, scores, step):
        return scores.index_fill(1, torch.tensor([int(scores[0].argmin())]), float("nan"))


class ChoosesSecond(Decoder):
    """Takes the second best token at the third step."""

    name = "chooses-second"

    def logits(self, logits, step):
        if step != 2:
            return logits
        return logits.scatter(1, logits.argmax(dim=1, keepdim=True), float(logits.min()))


class KeepsState(Decoder):
    """Shifts the logits of every call on a model but its first."""

    name = "keeps-state"

    def __init__(self):
        self.seen, self.again = weakref.WeakSet(), False

    def begin(self, model, generation_config):
        self.again = model in self.seen
        self.seen.add(model)

    def logits(self, logits, step):
        return logits * 1.001 if self.again else logits


class LeavesStateOnModel(Decoder):
    """Leaves an attribute on the model."""

    name = "leaves-state-on-model"

    def begin(self, model, generation_config):
        model.last_limit = generation_config.max_length


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


class StreamsTwice(Decoder):
    """Streams the first token twice."""

    name = "streams-twice"

    def stream(self, streamer, tokens, step, last):
        super().stream(streamer, tokens, step, last)
        if step == 0:
            super().stream(streamer, tokens, step, last)


class StreamsLate(Decoder):
    """Never streams the last token."""

    name = "streams-late"

    def stream(self, streamer, tokens, step, last):
        if not last:
            super().stream(streamer, tokens, step, last)


class StreamsAnother(Decoder):
    """Streams another token than it chose."""

    name = "streams-another"

    def stream(self, streamer, tokens, step, last):
        super().stream(streamer, tokens + 1 if step == 0 else tokens, step, last)


class NeverEndsStream(Decoder):
    """Does not tell the streamer that it is done."""

    name = "never-ends-stream"

    def end(self, streamer):
        pass


class CrashesWhenStreaming(Installed):
    """Works without a streamer only."""

    name = "crashes-when-streaming"

    def generate(self, model, call):
        if call.streamer is not None:
            raise TypeError("no streamer")
        return super().generate(model, call)


class StreamsWronglyTwoWays(Decoder):
    """Streams the first token of one row twice; for several rows it does not tell the streamer that it is done."""

    name = "streams-wrongly-two-ways"
    several = False

    def stream(self, streamer, tokens, step, last):
        super().stream(streamer, tokens, step, last)
        self.several = tokens.shape[0] > 1
        if step == 0 and not self.several:
            super().stream(streamer, tokens, step, last)

    def end(self, streamer):
        if not self.several:
            super().end(streamer)


class FailsOnce(Installed):
    """Fails on its first call of a process and never again."""

    name = "fails-once"

    def __init__(self):
        self.calls = 0

    def generate(self, model, call):
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("once")
        return super().generate(model, call)


class EndsTheProcess(Installed):
    """Ends the process, as a crash in compiled code does."""

    name = "ends-the-process"

    def generate(self, model, call):
        os._exit(7)


class Interrupts(Installed):
    """Raises what asks for the end of a run, though nobody does."""

    name = "interrupts"

    def generate(self, model, call):
        raise KeyboardInterrupt("of its own")
